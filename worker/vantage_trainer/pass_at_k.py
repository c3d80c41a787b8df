"""pass@k: the chance that at least one of k samples is correct, estimated without bias from n samples. No torch."""

from collections.abc import Sequence
from math import expm1, fsum, log1p


def pass_at_k(n: int, c: int, k: int) -> float:
    """Estimate for one problem with c of n samples correct: 1 - C(n-c, k) / C(n, k) (arXiv:2107.03374)."""
    _check(n, c, k)
    if c == 0:
        return 0.0
    if n - c < k:
        return 1.0
    return -expm1(fsum(log1p(-k / i) for i in range(n - c + 1, n + 1)))


def mean_pass_at_k(n: Sequence[int], c: Sequence[int], k: int) -> float:
    """Average over problems; samples of different problems are never pooled."""
    values = [pass_at_k(*counts, k) for counts in zip(n, c, strict=True)]
    return fsum(values) / len(values)


def _check(n: int, c: int, k: int) -> None:
    if k < 1:
        raise ValueError(f"k is {k}; pass@k needs k of at least 1.")
    if k > n:
        raise ValueError(f"k is {k} and there are {n} samples; take more samples or lower k.")
    if not 0 <= c <= n:
        raise ValueError(f"{c} correct of {n} samples is impossible; count again.")

"""Generated sums whose answers need several written steps; no torch here."""

import hashlib
import itertools
import random
from collections.abc import Iterator
from typing import TypedDict

HELD_OUT_ONE_IN = 8


class Row(TypedDict):
    """One problem as a dataset's row; `solution` is what the warm start imitates, `answer` what the reward compares."""

    id: str
    prompt: str
    solution: str
    answer: str
    meta: dict[str, int]


def generate(
    num: int, seed: int, *, terms: int = 4, digits: int = 1, estimates: float = 0.0, heldout: bool = False
) -> list[Row]:
    """Make `num` different problems, the same for the same seed; no held-out problem is ever a training problem.

    `estimates` is the share of solutions that are a quick guess, as people make in a hurry, instead of written steps.
    """
    _check(num, terms, digits, estimates, heldout)
    found: dict[tuple[int, ...], None] = {}
    for numbers in _draws(seed, terms, digits):
        if is_heldout(numbers) == heldout:
            found[numbers] = None
        if len(found) >= num:
            break
    chance = random.Random(f"estimates {seed} {terms} {digits}")
    return [problem(numbers, digits, estimated=chance.random() < estimates) for numbers in found]


def problem(numbers: tuple[int, ...], digits: int, *, estimated: bool = False) -> Row:
    """Write one sum: the solution of `3+8+5+9=` is its partial sums `11 16 25`, an estimate is `~30`."""
    text = "+".join(map(str, numbers))
    sums = list(itertools.accumulate(numbers))[1:]
    return {
        "id": text,
        "prompt": f"{text}=",
        "solution": f"~{_rounded(sums[-1])}" if estimated else " ".join(map(str, sums)),
        "answer": str(sums[-1]),
        "meta": {"terms": len(numbers), "digits": digits, "estimated": int(estimated)},
    }


def _rounded(total: int) -> int:
    """Round to tens, halves up."""
    return (total + 5) // 10 * 10


def is_heldout(numbers: tuple[int, ...]) -> bool:
    """Say on which side a problem lies; the side depends on the problem alone, so any two seeds stay disjoint."""
    return hashlib.blake2b(repr(numbers).encode(), digest_size=4).digest()[0] % HELD_OUT_ONE_IN == 0


def _draws(seed: int, terms: int, digits: int) -> Iterator[tuple[int, ...]]:
    chance = random.Random(f"arithmetic {seed} {terms} {digits}")
    low, high = _range(digits)
    while True:
        yield tuple(chance.randint(low, high) for _ in range(terms))


def _range(digits: int) -> tuple[int, int]:
    return (1, 9) if digits == 1 else (10 ** (digits - 1), 10**digits - 1)


def _check(num: int, terms: int, digits: int, estimates: float, heldout: bool) -> None:
    if num < 1 or not 2 <= terms <= 16 or not 1 <= digits <= 9:
        raise ValueError("Ask for at least one problem of 2 to 16 terms with 1 to 9 digits each.")
    if not 0 <= estimates <= 1:
        raise ValueError("The share of estimates lies between 0 and 1.")
    low, high = _range(digits)
    share = (1 if heldout else HELD_OUT_ONE_IN - 1) / HELD_OUT_ONE_IN
    most = int((high - low + 1) ** terms * share * 0.8)
    if num > most:
        raise ValueError(f"Only about {most} such problems exist; ask for fewer, or for more terms or digits.")

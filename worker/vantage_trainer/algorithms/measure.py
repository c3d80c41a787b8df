"""Metrics as sums that add over micro-batches and ranks: numerators with their denominators, and maxima.

Shapes: _T one value per trained token. A metric is the sum of numerators over the sum of denominators.
"""

import torch
from torch import Tensor

from vantage_trainer.algorithms.regularizer import k3
from vantage_trainer.algorithms.tokens import Tokens, exp
from vantage_trainer.composition import Ratio

Sums = dict[str, tuple[Tensor, Tensor]]
CLIPS = ("clip/low", "clip/high", "clip/fraction", "clip/dual", "clip/truncated_weight", "clip/masked")
WEIGHT, WEIGHT_SQUARED = "mismatch/weight", "mismatch/weight_squared"


def clip_sums(ratio: Ratio, flags: dict[str, Tensor], tokens: Tokens) -> Sums:
    """Count what the trust region did: over tokens, over sequences where the ratio is one per sequence."""
    one_T = torch.ones_like(tokens.advantage_T, dtype=torch.float64)
    unit_T = one_T / tokens.length_T() if ratio.level.startswith("sequence") else one_T
    pushed_T = one_T * (tokens.advantage_T != 0)
    units = dict.fromkeys(CLIPS, unit_T) | {"clip/masked": pushed_T}
    return {
        name: (_sum(flags[name] * unit) if name in flags else _sum(0 * unit), _sum(unit))
        for name, unit in units.items()
    }


def policy_sums(tokens: Tokens) -> Sums:
    """Drift inside the step, distance to the reference and entropy."""
    zero_T = torch.zeros_like(tokens.logp_T)
    means = {"policy/kl_old": k3(tokens.old_logp_T - tokens.logp_T, zero_T)}
    if tokens.ref_logp_T is not None:
        means["policy/kl_ref"] = k3(tokens.logp_T - tokens.ref_logp_T, zero_T)
    if tokens.entropy_T is not None:
        means["policy/entropy"] = tokens.entropy_T
    return _means(means)


def mismatch_sums(tokens: Tokens) -> Sums:
    """How far the generator's probabilities are from the trainer's at the same weights."""
    gap_T = tokens.old_logp_T - tokens.behaviour_logp_T
    weight_T = exp(gap_T)
    return _means(
        {
            "mismatch/kl": k3(-gap_T, gap_T),
            "mismatch/logp_gap": gap_T.abs(),
            WEIGHT: weight_T,
            WEIGHT_SQUARED: weight_T**2,
        }
    )


def mismatch_maxima(tokens: Tokens) -> dict[str, Tensor]:
    weight_T = exp(tokens.old_logp_T - tokens.behaviour_logp_T).detach()
    return {"mismatch/max_ratio": torch.cat([weight_T, weight_T.new_zeros(1)]).amax().double()}


def added(parts: list[Sums]) -> Sums:
    """Add the sums of several micro-batches."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: _added([part[name] for part in parts if name in part]) for name in names}


def metrics(sums: Sums, maxima: dict[str, Tensor]) -> dict[str, float]:
    """Divide, once, at the end; a metric over nothing is left out."""
    means = {name: float(top) / float(bottom) for name, (top, bottom) in sums.items() if bottom > 0}
    weight, squared = means.pop(WEIGHT, None), means.pop(WEIGHT_SQUARED, None)
    if weight is None or squared is None:
        return means
    return means | {"mismatch/ess": weight**2 / squared} | {name: float(value) for name, value in maxima.items()}


def _added(pairs: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    tops, bottoms = zip(*pairs, strict=True)
    return torch.stack(tops).sum(), torch.stack(bottoms).sum()


def _means(values: dict[str, Tensor]) -> Sums:
    return {name: (_sum(value_T), _sum(torch.ones_like(value_T))) for name, value_T in values.items()}


def _sum(value_T: Tensor) -> Tensor:
    return value_T.detach().double().sum()

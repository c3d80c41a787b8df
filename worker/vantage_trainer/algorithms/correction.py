"""Weights that make up for a generator that is not quite the trainer's policy: old over behaviour, never a gradient.

Shapes: _T one value per trained token. Bounds are inclusive and on old / behaviour.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from vantage_trainer.algorithms.ratio import LEVELS
from vantage_trainer.algorithms.tokens import Tokens, exp
from vantage_trainer.composition import Correction, NoCorrection

LEVEL_NAMES = {"token": "token", "sequence": "sequence_product", "geometric": "sequence_geometric"}


def corrected(part: Correction, tokens: Tokens) -> Tensor:
    """Weight of every token; ones without a correction."""
    if isinstance(part, NoCorrection):
        return torch.ones_like(tokens.old_logp_T)
    ratio_T = exp(LEVELS[LEVEL_NAMES[part.level]](tokens.old_logp_T, tokens.behaviour_logp_T, tokens)).detach()
    low, high = part.low or 0.0, torch.inf if part.high is None else part.high
    return CORRECTIONS[part.kind](ratio_T, low, high)


def truncated(ratio_T: Tensor, low: float, high: float) -> Tensor:
    return ratio_T.clamp(low, high)


def masked(ratio_T: Tensor, low: float, high: float) -> Tensor:
    return ratio_T * rejected(ratio_T, low, high)


def rejected(ratio_T: Tensor, low: float, high: float) -> Tensor:
    return ((ratio_T >= low) & (ratio_T <= high)).to(ratio_T.dtype)


CORRECTIONS: dict[str, Callable[[Tensor, float, float], Tensor]] = {
    "truncate": truncated,
    "mask": masked,
    "reject": rejected,
}

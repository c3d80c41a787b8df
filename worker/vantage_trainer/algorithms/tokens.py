"""The flat token layout of a micro-batch: responses one after another, no padding, none split over micro-batches.

Shapes: _T one value per token; `response_T` says which response a token belongs to (any integers); _TK one column for
each of the generator's likeliest tokens but the sampled one, -inf where there are fewer.
"""

from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from vantage_trainer.algorithms.segments import dense, total

CLAMP = 20.0


@dataclass(frozen=True)
class Tokens:
    """Log-probabilities by the policy that gave them: current (with gradient), start of step, generator, reference."""

    logp_T: Tensor
    old_logp_T: Tensor
    behaviour_logp_T: Tensor
    advantage_T: Tensor
    coef_T: Tensor
    mask_T: Tensor
    response_T: Tensor
    ref_logp_T: Tensor | None = None
    entropy_T: Tensor | None = None
    behaviour_top_TK: Tensor | None = None
    current_top_TK: Tensor | None = None

    def trained(self) -> "Tokens":
        """Leave the trained tokens alone, so that nothing at a masked position can leak or change a sum's order."""
        chosen_T = self.mask_T.bool()
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        kept = {name: value[chosen_T] for name, value in given.items() if value is not None}
        kept |= {name: kept[name].to(self.logp_T.dtype) for name in ("advantage_T", "coef_T")}
        return replace(self, **kept | {"response_T": dense(kept["response_T"])})

    def restored(self, value_N: Tensor, fill: float) -> Tensor:
        """Put values of the trained tokens back at their places. -> (T,)"""
        full_T = torch.full(self.mask_T.shape, fill, dtype=value_N.dtype, device=value_N.device)
        return full_T.masked_scatter(self.mask_T.bool(), value_N)

    def anchor_T(self, denominator: str) -> Tensor:
        """Log-probabilities of the policy below the fraction bar."""
        return {"old": self.old_logp_T, "behaviour": self.behaviour_logp_T}[denominator]

    def length_T(self) -> Tensor:
        """Trained tokens of the token's response."""
        return total(torch.ones_like(self.logp_T), self.response_T)

    def summed(self, value_T: Tensor) -> Tensor:
        """Sum over the token's response."""
        return total(value_T, self.response_T)


def exp(log_T: Tensor) -> Tensor:
    """Exponentiate a log-ratio clamped to [-20, 20]; no gradient passes outside."""
    return log_T.clamp(-CLAMP, CLAMP).exp()

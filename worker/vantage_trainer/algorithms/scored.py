"""Rewards of one rollout batch with what every baseline and scale asks of them. Shapes: _B one value per response."""

from dataclasses import dataclass

import torch
from torch import Tensor

from vantage_trainer.algorithms.segments import dense, largest, total

FLAT = {torch.float64: 1e-12}
FLAT_ROUNDED = 1e-6


@dataclass(frozen=True)
class Scored:
    """Final rewards in float64, 0 where unscorable; `counted_B` marks those that enter batch statistics."""

    value_B: Tensor
    scored_B: Tensor
    group_B: Tensor
    counted_B: Tensor
    length_B: Tensor
    relative: float

    def num_scored_B(self) -> Tensor:
        return total(self.scored_B.to(self.value_B.dtype), self.group_B)

    def group_mean_B(self) -> Tensor:
        return total(self.value_B, self.group_B) / self.num_scored_B().clamp(min=1)

    def lone_B(self) -> Tensor:
        """Mark groups with fewer than two scorable responses: nothing to compare with."""
        return self.num_scored_B() < 2

    def flat_B(self) -> Tensor:
        """Mark groups whose scorable rewards are all equal up to the rounding of the incoming dtype."""
        highest_B = largest(self.value_B.masked_fill(~self.scored_B, -torch.inf), self.group_B)
        lowest_B = -largest((-self.value_B).masked_fill(~self.scored_B, -torch.inf), self.group_B)
        return ~(highest_B - lowest_B > self.relative * largest(self.value_B.abs(), self.group_B))


def scored(reward_B: Tensor, group_B: Tensor, length_B: Tensor) -> Scored:
    """Read rewards, NaN and infinities being unscorable; all that is scorable counts."""
    scored_B = reward_B.isfinite()
    value_B = torch.where(scored_B, reward_B, 0).double()
    relative = FLAT.get(reward_B.dtype, FLAT_ROUNDED)
    return Scored(value_B, scored_B, dense(group_B), scored_B, length_B.double(), relative)


def is_flat(value_N: Tensor, relative: float) -> bool:
    """Say whether all values are equal up to rounding; none and one are."""
    if len(value_N) < 2:
        return True
    return bool(value_N.max() - value_N.min() <= relative * value_N.abs().max())

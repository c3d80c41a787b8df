"""What sampling options do to rewards, and which responses they leave out. Shapes: _B one value per response."""

import torch
from torch import Tensor

from vantage_trainer.algorithms.scored import Scored
from vantage_trainer.algorithms.segments import dense, total
from vantage_trainer.composition import Overlong, Sampling


def shaped(
    sampling: Sampling, reward_B: Tensor, length_B: Tensor, truncated_B: Tensor, *, response_limit: int
) -> Tensor:
    """Apply the truncation rule, then the length penalty, to the verifier's reward; NaN stays NaN."""
    if sampling.truncated == "zero_reward":
        reward_B = torch.where(truncated_B & reward_B.isfinite(), 0, reward_B)
    if sampling.overlong is not None:
        reward_B = reward_B - overlong_penalty(sampling.overlong, length_B, response_limit).to(reward_B.dtype)
    return reward_B


def overlong_penalty(overlong: Overlong, length_B: Tensor, response_limit: int) -> Tensor:
    """Rise from 0 at limit - buffer to factor at the limit and stay there (DAPO, arXiv:2503.14476)."""
    limit = response_limit if overlong.limit == "rollout.response_limit" else overlong.limit
    buffer = overlong.buffer or overlong.buffer_fraction * limit
    return overlong.factor * ((length_B.double() - (limit - buffer)) / buffer).clamp(0, 1)


def informative(correct_B: Tensor, group_B: Tensor, scored_B: Tensor) -> Tensor:
    """Mark groups with a right and a wrong answer among those scored: by correctness, never by shaped reward."""
    index_B = dense(group_B)
    right_B = total((correct_B & scored_B).double(), index_B)
    return (right_B > 0) & (right_B < total(scored_B.double(), index_B))


def passes_filters(sampling: Sampling, rewards: Scored, correct_B: Tensor) -> Tensor:
    """Mark responses whose group the zero-variance filter and dynamic sampling let through."""
    keep_B = rewards.scored_B.clone()
    if sampling.zero_variance_filter:
        keep_B &= ~rewards.flat_B()
    if sampling.dynamic_sampling is not None:
        keep_B &= informative(correct_B, rewards.group_B, rewards.scored_B)
    return keep_B

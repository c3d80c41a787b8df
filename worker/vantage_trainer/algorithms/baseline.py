"""What a reward is compared with: reward minus baseline, one value per response.

A flat group, and a group with one scorable response, give exactly 0 (algorithms.md 4): rounding must not become signal.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from vantage_trainer.algorithms.scored import Scored, is_flat
from vantage_trainer.algorithms.segments import total
from vantage_trainer.composition import Baseline, BatchMean, CriticGae, Ema, GroupLeaveOneOut, GroupMean, NoBaseline

GROUP_BASELINES = ("group_mean", "group_leave_one_out")


def centred(part: Baseline, rewards: Scored, ema: Tensor) -> Tensor:
    """Subtract the chosen baseline. -> centred_B in float64, 0 where unscorable."""
    return torch.where(rewards.scored_B, BASELINES[part.kind](part, rewards, ema), 0)


def none(part: NoBaseline | CriticGae, rewards: Scored, ema: Tensor) -> Tensor:
    return rewards.value_B


def batch_mean(part: BatchMean, rewards: Scored, ema: Tensor) -> Tensor:
    """Compare with the batch's mean, which contains the response itself (REINFORCE, Williams 1992)."""
    values_N = rewards.value_B[rewards.scored_B]
    if is_flat(values_N, rewards.relative):
        return torch.zeros_like(rewards.value_B)
    return rewards.value_B - values_N.mean()


def moving_average(part: Ema, rewards: Scored, ema: Tensor) -> Tensor:
    """Compare with the moving average from before this batch; it starts at 0."""
    return rewards.value_B - ema


def group_mean(part: GroupMean, rewards: Scored, ema: Tensor) -> Tensor:
    """Compare with the group's mean (GRPO, arXiv:2402.03300)."""
    return (rewards.value_B - rewards.group_mean_B()).masked_fill(rewards.flat_B(), 0)


def group_leave_one_out(part: GroupLeaveOneOut, rewards: Scored, ema: Tensor) -> Tensor:
    """Compare with the mean of the other answers (RLOO, arXiv:2402.14740)."""
    others_B = total(rewards.value_B, rewards.group_B) - rewards.value_B
    centred_B = rewards.value_B - others_B / (rewards.num_scored_B() - 1).clamp(min=1)
    return centred_B.masked_fill(rewards.flat_B(), 0)


def next_ema(part: Baseline, rewards: Scored, ema: Tensor) -> Tensor:
    """Move the average towards this batch's mean; unchanged when nothing could be scored."""
    if not isinstance(part, Ema) or not rewards.scored_B.any():
        return ema
    return part.momentum * ema + (1 - part.momentum) * rewards.value_B[rewards.scored_B].mean()


BASELINES: dict[str, Callable[..., Tensor]] = {
    "none": none,
    "critic_gae": none,  # its values are per token: critic.py
    "batch_mean": batch_mean,
    "ema": moving_average,
    "group_mean": group_mean,
    "group_leave_one_out": group_leave_one_out,
}

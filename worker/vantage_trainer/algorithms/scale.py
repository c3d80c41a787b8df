"""What a centred reward is divided by. Shapes: _B one value per response, _N the responses that count."""

from collections.abc import Callable

import torch
from torch import Tensor

from vantage_trainer.algorithms.scored import Scored, is_flat
from vantage_trainer.algorithms.segments import total
from vantage_trainer.composition import BatchStd, BatchWhiten, GroupMeanReward, GroupStd, NoScale, Scale, TokenWhiten

WHITEN_EPS = 1e-8


def scaled(part: Scale, rewards: Scored, centred_B: Tensor) -> Tensor:
    """Divide by the chosen scale. -> advantage_B in float64, 0 where unscorable."""
    return torch.where(rewards.scored_B, SCALES[part.kind](part, rewards, centred_B), 0)


def none(part: NoScale, rewards: Scored, centred_B: Tensor) -> Tensor:
    return centred_B


def group_std(part: GroupStd, rewards: Scored, centred_B: Tensor) -> Tensor:
    """Divide by the group's standard deviation plus eps (GRPO); a flat group gives exactly 0."""
    deviation_B = torch.where(rewards.scored_B, rewards.value_B - rewards.group_mean_B(), 0)
    freedom_B = (rewards.num_scored_B() - part.std_ddof).clamp(min=1)
    std_B = (total(deviation_B**2, rewards.group_B) / freedom_B).sqrt()
    return (centred_B / (std_B + part.std_eps)).masked_fill(rewards.flat_B(), 0)


def batch_std(part: BatchStd, rewards: Scored, centred_B: Tensor) -> Tensor:
    """Divide by the standard deviation of the centred rewards over the batch (ScaleRL, arXiv:2510.13786)."""
    centred_N = centred_B[rewards.counted_B]
    if is_flat(centred_N, rewards.relative):
        return torch.zeros_like(centred_B)
    return centred_B / (centred_N.std(correction=part.std_ddof) + part.std_eps)


def batch_whiten(part: BatchWhiten, rewards: Scored, centred_B: Tensor) -> Tensor:
    """Subtract the batch's mean and divide by its standard deviation (BroRL, arXiv:2510.01180)."""
    centred_N = centred_B[rewards.counted_B]
    if is_flat(centred_N, rewards.relative):
        return torch.zeros_like(centred_B)
    return (centred_B - centred_N.mean()) / (centred_N.std(correction=part.std_ddof) + part.std_eps)


def token_whiten(part: TokenWhiten, rewards: Scored, centred_B: Tensor) -> Tensor:
    """Whiten over the trained tokens, so that long responses weigh more: (A - mean) / sqrt(var + 1e-8), ddof 1."""
    weight_B = rewards.length_B * rewards.counted_B
    if is_flat(centred_B[weight_B > 0], rewards.relative):
        return torch.zeros_like(centred_B)
    mean = (weight_B * centred_B).sum() / weight_B.sum()
    variance = (weight_B * (centred_B - mean) ** 2).sum() / (weight_B.sum() - 1)
    return (centred_B - mean) / (variance + WHITEN_EPS).sqrt()


def group_mean_reward(part: GroupMeanReward, rewards: Scored, centred_B: Tensor) -> Tensor:
    """Divide by the group's success rate (MaxRL); rewards are 0 or 1, `zero_success` decides for all-wrong groups."""
    mean_B = rewards.group_mean_B()
    all_wrong = {"zero": 0.0, "keep_minus_one": -1.0}[part.zero_success]
    advantage_B = torch.where(mean_B > 0, centred_B / mean_B, all_wrong)
    return advantage_B.masked_fill(rewards.lone_B(), 0)


SCALES: dict[str, Callable[..., Tensor]] = {
    "none": none,
    "group_std": group_std,
    "batch_std": batch_std,
    "batch_whiten": batch_whiten,
    "token_whiten": token_whiten,
    "group_mean_reward": group_mean_reward,
}

"""Credit: from the rewards of a whole rollout batch to one advantage per response. Runs once, before the update.

Shapes: _B one value per response of the batch, all ranks together; group labels are arbitrary integers in any order.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from vantage_trainer.algorithms.baseline import GROUP_BASELINES, centred, next_ema
from vantage_trainer.algorithms.sampling import passes_filters, shaped
from vantage_trainer.algorithms.scale import scaled
from vantage_trainer.algorithms.scored import Scored, scored
from vantage_trainer.composition import Algorithm


@dataclass(frozen=True)
class Credit:
    """Advantages and who takes part; `reward_B` is the shaped reward, NaN where unscorable."""

    advantage_B: Tensor
    effective_B: Tensor
    flat_B: Tensor
    lone_B: Tensor
    reward_B: Tensor
    ema: Tensor


def credit(
    algorithm: Algorithm,
    reward_B: Tensor,
    group_B: Tensor,
    length_B: Tensor,
    *,
    correct_B: Tensor,
    truncated_B: Tensor,
    response_limit: int,
    kl_B: Tensor | None = None,
    ema: Tensor | float | None = None,
) -> Credit:
    """Turn rewards into advantages; with a critic, into shaped rewards that token_credit spreads over tokens.

    reward_B: verifier's rewards, NaN = unscorable. length_B: trained tokens. correct_B: correctness before shaping.
    kl_B: sum of the KL estimate over each response, needed where the KL is in the reward. ema: the moving average.
    Raises ValueError where the counts differ.
    """
    _check_counts({"rewards": reward_B, "lengths": length_B, "verdicts": correct_B}, len(group_B))
    before = torch.as_tensor(0.0 if ema is None else ema, dtype=torch.float64)
    final_B = shaped(algorithm.sampling, reward_B, length_B, truncated_B, response_limit=response_limit)
    final_B = _less_kl(algorithm, final_B, kl_B)
    rewards = scored(final_B, group_B, length_B)
    _check_binary(algorithm, rewards)
    counted_B = _counted(algorithm, rewards, correct_B, truncated_B)
    rewards = replace(rewards, counted_B=counted_B)
    advantage_B = scaled(algorithm.scale, rewards, centred(algorithm.baseline, rewards, before))
    return Credit(
        advantage_B=advantage_B.to(reward_B.dtype),
        effective_B=counted_B & (length_B > 0),
        flat_B=rewards.flat_B(),
        lone_B=rewards.lone_B(),
        reward_B=final_B,
        ema=next_ema(algorithm.baseline, rewards, before),
    )


def _check_counts(given: dict[str, Tensor], num: int) -> None:
    """Refuse what would otherwise be spread over all responses without a word."""
    for name, value_B in given.items():
        if value_B.shape != (num,):
            raise ValueError(f"credit was given {value_B.numel()} {name} for {num} responses; give one per response.")


def _less_kl(algorithm: Algorithm, reward_B: Tensor, kl_B: Tensor | None) -> Tensor:
    kl = algorithm.regularizer.kl
    if kl is None or kl.where != "reward" or kl.coef == 0 or algorithm.baseline.kind == "critic_gae":
        return reward_B
    assert kl_B is not None, "the KL is in the reward, so kl_B is needed"
    return reward_B - kl.coef * kl_B.to(reward_B.dtype)


def _check_binary(algorithm: Algorithm, rewards: Scored) -> None:
    values_N = rewards.value_B[rewards.scored_B]
    if algorithm.scale.kind == "group_mean_reward" and not ((values_N == 0) | (values_N == 1)).all():
        raise ValueError(
            "Scaling by the group's mean reward (MaxRL) needs rewards of exactly 0 or 1; "
            "give the run one reward part of weight 1 that answers 0 or 1, without shaping or KL."
        )


def _counted(algorithm: Algorithm, rewards: Scored, correct_B: Tensor, truncated_B: Tensor) -> Tensor:
    counted_B = passes_filters(algorithm.sampling, rewards, correct_B)
    if algorithm.sampling.truncated == "mask":
        counted_B &= ~truncated_B
    if algorithm.baseline.kind in GROUP_BASELINES:
        counted_B &= ~_orphaned(rewards)
    return counted_B


def _orphaned(rewards: Scored) -> Tensor:
    """Mark groups that errors left with fewer than two responses: they are dropped whole."""
    errored_B = torch.zeros_like(rewards.value_B).index_add(0, rewards.group_B, (~rewards.scored_B).double())
    return rewards.lone_B() & (errored_B[rewards.group_B] > 0)

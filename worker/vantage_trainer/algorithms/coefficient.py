"""Aggregation as one coefficient per token of a response, from global counts, once per optimizer step.

The loss is the sum of coefficient x term over the tokens of the step; nothing divides afterwards (algorithms.md 3).
Shapes: _B one value per response of the optimizer step, all ranks and micro-batches together.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from vantage_trainer.algorithms.segments import dense, total
from vantage_trainer.composition import (
    Aggregation,
    DeltaL,
    PromptMean,
    SequenceMeanTokenMean,
    SequenceMeanTokenSum,
    SequenceMeanTokenSumNorm,
    TokenMean,
)

# Modes that average over tokens: a term that counts once per sequence weighs as much as all tokens of the sequence.
AVERAGES_TOKENS = ("token_mean", "sequence_mean_token_mean", "prompt_mean")


def coefficients(
    aggregation: Aggregation,
    length_B: Tensor,
    group_B: Tensor,
    effective_B: Tensor,
    *,
    response_limit: int,
    rollout_length_B: Tensor | None = None,
) -> Tensor:
    """Weigh each trained token of a response. -> coef_B in float64, 0 for responses that take no part.

    length_B: trained tokens. rollout_length_B: lengths of the rollout batch's effective responses, where that is more
    than this step (only delta_l with scope rollout_batch reads it).
    """
    length_B = torch.where(effective_B, length_B, 0).double()
    whole_B = length_B if rollout_length_B is None else rollout_length_B.double()
    kappa_B = AGGREGATIONS[aggregation.kind](aggregation, length_B, dense(group_B), response_limit, whole_B)
    return torch.where(length_B > 0, kappa_B, 0)


def token_mean(part: TokenMean, length_B: Tensor, group_B: Tensor, limit: int, whole_B: Tensor) -> Tensor:
    return torch.ones_like(length_B) / length_B.sum()


def sequence_mean_token_mean(
    part: SequenceMeanTokenMean, length_B: Tensor, group_B: Tensor, limit: int, whole_B: Tensor
) -> Tensor:
    return 1 / (_num(length_B) * length_B)


def sequence_mean_token_sum(
    part: SequenceMeanTokenSum, length_B: Tensor, group_B: Tensor, limit: int, whole_B: Tensor
) -> Tensor:
    return torch.ones_like(length_B) / _num(length_B)


def sequence_mean_token_sum_norm(
    part: SequenceMeanTokenSumNorm, length_B: Tensor, group_B: Tensor, limit: int, whole_B: Tensor
) -> Tensor:
    """Divide by a constant length (Dr. GRPO, arXiv:2503.20783), never by the batch's width."""
    return torch.ones_like(length_B) / (_num(length_B) * _constant(part.length, limit))


def prompt_mean(part: PromptMean, length_B: Tensor, group_B: Tensor, limit: int, whole_B: Tensor) -> Tensor:
    """Average over a prompt's tokens, then over prompts that have any."""
    tokens_B = total(length_B, group_B)
    num_prompts = len(group_B[length_B > 0].unique())
    return 1 / (num_prompts * tokens_B)


def delta_l(part: DeltaL, length_B: Tensor, group_B: Tensor, limit: int, whole_B: Tensor) -> Tensor:
    """Weigh by length to the power -alpha (Delta-L); scope says over which responses the weights are normalised."""
    whole_B = whole_B if part.scope == "rollout_batch" else length_B
    mean_power = whole_B[whole_B > 0].pow(-part.alpha).mean()
    return length_B.pow(-part.alpha) / (_constant(part.length, limit) * _num(length_B) * mean_power)


def _num(length_B: Tensor) -> Tensor:
    return (length_B > 0).sum()


def _constant(length: int | str, limit: int) -> int:
    return length if isinstance(length, int) else limit


AGGREGATIONS: dict[str, Callable[..., Tensor]] = {
    "token_mean": token_mean,
    "sequence_mean_token_mean": sequence_mean_token_mean,
    "sequence_mean_token_sum": sequence_mean_token_sum,
    "sequence_mean_token_sum_norm": sequence_mean_token_sum_norm,
    "prompt_mean": prompt_mean,
    "delta_l": delta_l,
}

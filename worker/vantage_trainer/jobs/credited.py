"""Advantages as a run's algorithm gives them, from rewards alone: no model, no policy."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from vantage_trainer.algorithms.credit import Credit, credit
from vantage_trainer.spec import RunSpec


@dataclass(frozen=True)
class Graded:
    """One response as credit sees it; `kl` is the estimate summed over its tokens, where the KL is in the reward."""

    group: int
    reward: float | None
    correct: bool | None
    length: int
    truncated: bool
    kl: float = 0.0


def credited(spec: RunSpec, graded: Sequence[Graded], ema: float = 0.0) -> Credit:
    """Assign credit to one step's responses; ValueError where the algorithm cannot take these rewards."""
    return credit(
        spec.algorithm,
        torch.tensor([float("nan") if one.reward is None else one.reward for one in graded], dtype=torch.float64),
        torch.tensor([one.group for one in graded]),
        torch.tensor([one.length for one in graded]),
        correct_B=torch.tensor([bool(one.correct) for one in graded]),
        truncated_B=torch.tensor([one.truncated for one in graded]),
        response_limit=spec.rollout.response_limit,
        kl_B=torch.tensor([one.kl for one in graded], dtype=torch.float64),
        ema=ema,
    )


def advantages(given: Credit) -> Tensor:
    """Return one advantage per response, 0 for those that take no part."""
    return torch.where(given.effective_B, given.advantage_B, 0.0)

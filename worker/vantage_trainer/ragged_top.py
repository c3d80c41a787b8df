"""The likeliest tokens of a batch file, beside each sampled one. Shapes: _TK one row per token, one column per other.

A file gives `token_ids`, and for each token a list of `topk_ids` with `topk_logp_behav` and `topk_logp_new`.
"""

from dataclasses import dataclass

import torch
from pydantic import JsonValue
from torch import Tensor

from vantage_trainer.ragged import Inputs

NAMES = ("topk_ids", "topk_logp_behav", "topk_logp_new")


@dataclass(frozen=True)
class Top:
    """Log-probabilities of the generator's likeliest tokens but the sampled one; -inf where there are fewer."""

    behaviour_TK: Tensor
    current_TK: Tensor


def read_top(inputs: Inputs, lengths: list[int], k: int) -> Top:
    """Read the first k of each token; raises ValueError with a sentence where a list is missing or does not fit."""
    sampled = _column(inputs, "token_ids", lengths)
    ids, behaviour, current = (_column(inputs, name, lengths) for name in NAMES)
    kept = [_others(token, which, k) for token, which in zip(sampled, ids, strict=True)]
    width = max([1, *map(len, kept)])
    return Top(_padded(behaviour, kept, width, NAMES[1]), _padded(current, kept, width, NAMES[2]))


def _column(inputs: Inputs, name: str, lengths: list[int]) -> list[JsonValue]:
    rows = inputs.get(name)
    if not isinstance(rows, list) or [len(row) for row in rows if isinstance(row, list)] != lengths:
        raise ValueError(f"A divergence over the top tokens needs inputs.{name}, one entry for each token.")
    return [entry for row in rows if isinstance(row, list) for entry in row]


def _others(token: JsonValue, ids: JsonValue, k: int) -> list[int]:
    """Say at which places the first k tokens are others than the sampled one: S is their union with it."""
    if not isinstance(ids, list):
        raise ValueError("inputs.topk_ids must hold a list of token ids for each token.")
    return [place for place, candidate in enumerate(ids[:k]) if candidate != token]


def _padded(values: list[JsonValue], kept: list[list[int]], width: int, name: str) -> Tensor:
    full_TK = torch.full((len(values), width), -torch.inf, dtype=torch.float64)
    for row, (logps, places) in enumerate(zip(values, kept, strict=True)):
        if not isinstance(logps, list) or len(logps) <= max(places, default=-1):
            raise ValueError(f"inputs.{name} must hold as many values for each token as topk_ids.")
        chosen = [logps[place] for place in places]
        full_TK[row, : len(chosen)] = torch.tensor(chosen, dtype=torch.float64)
    return full_TK

"""Responses with their prompts as the policy sees them, and how they are dealt to ranks and micro-batches.

Shapes: _BT padded rows of a micro-batch, _T its response tokens one after another. Rows are padded on the right, where
a causal model never looks, so no mask is needed and the result is exact.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from vantage_trainer.algorithms.tokens import Tokens


@dataclass(frozen=True)
class Sequence:
    """One response and everything its update needs; `coef` is its coefficient per token."""

    prompt_ids: list[int]
    response_ids: list[int]
    behaviour: list[float]
    advantage: float = 0.0
    coef: float = 0.0
    old: Tensor | None = None
    ref: Tensor | None = None
    trained: bool = True
    index: int = 0

    @property
    def length(self) -> int:
        return len(self.prompt_ids) + len(self.response_ids)

    def weighing(self, coef: float) -> "Sequence":
        return replace(self, coef=coef)

    def filler(self) -> "Sequence":
        """Return a short stand-in that trains nothing, for ranks with fewer micro-batches."""
        return replace(self, response_ids=self.response_ids[:1], behaviour=[0.0], old=None, ref=None, trained=False)


def microbatches(sequences: list[Sequence], rank: int, world: int, budget: int) -> list[list[Sequence]]:
    """Deal this rank's micro-batches: similar lengths together, at most `budget` padded tokens, the same number on all.

    Longest first, dealt in turn; a rank that has fewer runs fillers, since ZeRO 2 and 3 hang otherwise.
    """
    order = sorted(sequences, key=lambda sequence: (-sequence.length, sequence.index))
    dealt = [_cut(order[r::world], budget) for r in range(world)]
    most = max(map(len, dealt))
    shortest = order[-1].filler()
    return dealt[rank] + [[shortest]] * (most - len(dealt[rank]))


def _cut(sequences: Iterable[Sequence], budget: int) -> list[list[Sequence]]:
    batches: list[list[Sequence]] = []
    for sequence in sequences:
        if not batches or (len(batches[-1]) + 1) * batches[-1][0].length > budget:
            batches.append([])
        batches[-1].append(sequence)
    return batches


@dataclass(frozen=True)
class Rows:
    """A micro-batch as tensors: `place_T` are the flat positions whose next token is a response token."""

    ids_BT: Tensor
    place_T: Tensor
    target_T: Tensor
    lengths: list[int]


def rows(batch: list[Sequence], device: torch.device) -> Rows:
    width = max(sequence.length for sequence in batch)
    ids_BT = torch.zeros(len(batch), width, dtype=torch.long)
    places = []
    for row, sequence in enumerate(batch):
        ids_BT[row, : sequence.length] = torch.tensor(sequence.prompt_ids + sequence.response_ids)
        start = row * width + len(sequence.prompt_ids) - 1
        places.append(torch.arange(start, start + len(sequence.response_ids)))
    place_T = torch.cat(places)
    target_T = ids_BT.flatten()[place_T + 1]
    lengths = [len(sequence.response_ids) for sequence in batch]
    return Rows(ids_BT.to(device), place_T.to(device), target_T.to(device), lengths)


def tokens(batch: list[Sequence], logp_T: Tensor, entropy_T: Tensor | None) -> Tokens:
    """Lay a micro-batch out for the loss; without an old log-probability the current one is the old one."""
    has_old, has_ref = batch[0].old is not None, batch[0].ref is not None
    return Tokens(
        logp_T=logp_T,
        old_logp_T=_stored([s.old for s in batch], logp_T) if has_old else logp_T.detach(),
        behaviour_logp_T=torch.tensor([p for s in batch for p in s.behaviour], dtype=logp_T.dtype).to(logp_T.device),
        advantage_T=_each(batch, [s.advantage for s in batch], logp_T),
        coef_T=_each(batch, [s.coef for s in batch], logp_T),
        mask_T=_each(batch, [float(s.trained) for s in batch], logp_T),
        response_T=_each(batch, [float(i) for i in range(len(batch))], logp_T).long(),
        ref_logp_T=_stored([s.ref for s in batch], logp_T) if has_ref else None,
        entropy_T=entropy_T,
    )


def _stored(values: list[Tensor | None], like: Tensor) -> Tensor:
    return torch.cat([value for value in values if value is not None]).to(like)


def _each(batch: list[Sequence], values: list[float], like: Tensor) -> Tensor:
    lengths = torch.tensor([len(s.response_ids) for s in batch])
    return torch.tensor(values, dtype=torch.float64).repeat_interleave(lengths).to(like)

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
    """One response and everything its update needs; `coef` is its coefficient per token.

    With a critic the advantage is one per token, `value` what the critic said before the update, `target` the return,
    these two of trained tokens alone. `injected` is the place of tokens that were not sampled.
    """

    prompt_ids: list[int]
    response_ids: list[int]
    behaviour: list[float]
    advantage: float | Tensor = 0.0
    coef: float = 0.0
    old: Tensor | None = None
    ref: Tensor | None = None
    value: Tensor | None = None
    target: Tensor | None = None
    trained: bool = True
    index: int = 0
    injected: tuple[int, int] = (0, 0)

    @property
    def length(self) -> int:
        return len(self.prompt_ids) + len(self.response_ids)

    @property
    def mask_T(self) -> Tensor:
        """Mark tokens that train: none of a filler's, and none that was put there and not sampled."""
        mask_T = torch.full((len(self.response_ids),), self.trained)
        mask_T[slice(*self.injected)] = False
        return mask_T

    def weighing(self, coef: float) -> "Sequence":
        return replace(self, coef=coef)

    def filler(self) -> "Sequence":
        """Return a short stand-in that trains nothing, for ranks with fewer micro-batches."""
        ids = self.response_ids[:1]
        return Sequence(self.prompt_ids, ids, [0.0] * len(ids), trained=False, index=self.index)


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
        mask_T=_each(batch, [s.mask_T for s in batch], logp_T),
        response_T=_each(batch, [float(i) for i in range(len(batch))], logp_T).long(),
        ref_logp_T=_stored([s.ref for s in batch], logp_T) if has_ref else None,
        entropy_T=entropy_T,
    )


@dataclass(frozen=True)
class Judged:
    """Trained tokens of a micro-batch as the critic's loss takes them: values now and before, returns, coefficients."""

    value_T: Tensor
    value_old_T: Tensor
    return_T: Tensor
    coef_T: Tensor


def judged(batch: list[Sequence], value_T: Tensor) -> Judged:
    """Lay a micro-batch out for the critic; fillers leave nothing but their gradient of zero."""
    mask_T = _each(batch, [s.mask_T for s in batch], value_T).bool()
    return Judged(
        value_T=value_T[mask_T],
        value_old_T=_stored([s.value for s in batch], value_T),
        return_T=_stored([s.target for s in batch], value_T),
        coef_T=_each(batch, [s.coef for s in batch], value_T)[mask_T],
    )


def by_index(batch: list[Sequence], value_T: Tensor) -> dict[int, Tensor]:
    """Cut a micro-batch's values into those of each response, on the CPU and by the response's number."""
    pieces = value_T.float().cpu().split([len(sequence.response_ids) for sequence in batch])
    return {s.index: piece for s, piece in zip(batch, pieces, strict=True) if s.trained}


def _stored(values: list[Tensor | None], like: Tensor) -> Tensor:
    return torch.cat([like.new_zeros(0), *(value.to(like) for value in values if value is not None)])


def _each(batch: list[Sequence], values: Iterable[float | Tensor], like: Tensor) -> Tensor:
    """Give every token its own value, or its response's."""
    each = zip(batch, values, strict=True)
    return torch.cat([torch.as_tensor(v, dtype=torch.float64).expand(len(s.response_ids)) for s, v in each]).to(like)

"""Send weights to the generator through shared memory and compare what its kernels make of them.

Letters: a fingerprint of a matrix weight_NK is some of its columns, read by the generator by multiplying one-hot rows.
"""

import mmap
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

# Matrices up to this many elements are compared whole; of larger ones some columns, others at each version.
WHOLE_ELEMENTS = 1 << 20
COLUMNS = 8
ALIGNMENT = 64
# A head tied to the embeddings is sent and proven under its own name: the generator keeps a packed copy of it.
HEAD = "lm_head.weight"


class SyncError(RuntimeError):
    """The generator does not use the weights that were sent; the text names the tensor."""


@dataclass(frozen=True, slots=True)
class SyncReport:
    """Proof of one push: compared rows, the largest difference (0.0, or it would have failed), and the time it took."""

    version: int
    rows: int
    max_error: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Entry:
    """Where one tensor lies in the shared buffer, and which indices of it are to be proven."""

    name: str
    shape: tuple[int, ...]
    offset: int
    indices: list[int]


class Receiver(Protocol):
    def ask_push(self, layout: list[Entry], version: int, buffer: int) -> dict[str, Tensor]: ...


class WeightSender:
    """Keep one anonymous buffer that both processes map; nothing of it outlives them."""

    def __init__(self, dtype: str, *, tied: bool) -> None:
        self._dtype: torch.dtype = getattr(torch, dtype)
        self._tied = tied
        self._handle = os.memfd_create("vantage-weights", os.MFD_CLOEXEC)
        self._buffer: mmap.mmap | None = None
        self._used = 0

    def push(self, named_tensors: Iterable[tuple[str, Tensor]], version: int, receiver: Receiver) -> SyncReport:
        """Write the tensors, have them taken over, and compare the answer with what was written."""
        began = time.perf_counter()
        layout, proofs = self._fill(named_tensors, version)
        rows, max_error = compare(proofs, receiver.ask_push(layout, version, self._handle))
        return SyncReport(version, rows, max_error, time.perf_counter() - began)

    def close(self) -> None:
        os.close(self._handle)

    def _fill(self, named_tensors: Iterable[tuple[str, Tensor]], version: int) -> tuple[list[Entry], dict[str, Tensor]]:
        layout: list[Entry] = []
        proofs: dict[str, Tensor] = {}
        self._used = 0
        for given, tensor in named_tensors:
            if self._tied and given == HEAD:
                continue
            sent = self._write(tensor)
            for name in [given, HEAD] if self._tied and is_table(given) else [given]:
                indices = proven_indices(sent, name, version)
                layout.append(Entry(name, tuple(sent.shape), self._used, indices))
                proofs[name] = slices(sent, name, indices).clone()
            self._used += -(-sent.numel() * sent.element_size() // ALIGNMENT) * ALIGNMENT
        return layout, proofs

    def _write(self, tensor: Tensor) -> Tensor:
        buffer = self._reserve(self._used + tensor.numel() * self._dtype.itemsize)
        place = torch.frombuffer(buffer, dtype=self._dtype, count=tensor.numel(), offset=self._used)
        return place.view(tensor.shape).copy_(tensor.detach())

    def _reserve(self, size: int) -> mmap.mmap:
        if self._buffer is None or len(self._buffer) < size:
            os.ftruncate(self._handle, max(2 * size, mmap.PAGESIZE))
            self._buffer = mmap.mmap(self._handle, max(2 * size, mmap.PAGESIZE))
        return self._buffer


def is_table(name: str) -> bool:
    """Tell whether a weight is looked up by row, not multiplied."""
    return any("embed" in module for module in name.split(".")[-2:-1])


def proven_indices(tensor: Tensor, name: str, version: int) -> list[int]:
    """Choose the columns (of a table: the rows) to prove at this version; an empty list means the whole tensor."""
    if tensor.ndim != 2:
        return []
    size = tensor.shape[0] if is_table(name) else tensor.shape[1]
    if tensor.numel() <= WHOLE_ELEMENTS or size <= COLUMNS:
        return list(range(size))
    return [(version * COLUMNS + i) % size for i in range(COLUMNS)]


def slices(tensor: Tensor, name: str, indices: list[int]) -> Tensor:
    """Return the chosen columns as rows: tensor_NK -> slices_CN; rows of a table; all of anything else."""
    if tensor.ndim != 2:
        return tensor
    return tensor[indices] if is_table(name) else tensor[:, indices].T


def compare(sent: dict[str, Tensor], found: dict[str, Tensor]) -> tuple[int, float]:
    """Return how many rows were compared and the largest difference; SyncError on any difference at all."""
    rows = 0
    for name, proof in sent.items():
        if name not in found:
            raise SyncError(f"The generator could not prove that it uses {name}: it was sent but is not in its model.")
        if not torch.equal(proof, found[name]):
            raise SyncError(_difference(name, proof, found[name]))
        rows += proof.shape[0] if proof.ndim == 2 else 1
    return rows, 0.0


def _difference(name: str, proof: Tensor, found: Tensor) -> str:
    if not torch.isfinite(proof.float()).all():
        return f"The weights sent are not finite: {name} holds NaN or infinity, so training has diverged."
    if proof.shape != found.shape:
        return f"The generator holds {name} in another shape than it was sent: {tuple(found.shape)}."
    error = (proof.float() - found.float()).abs().max().item()
    return f"The generator does not use the weights it was sent: {name} differs by up to {error:.3g}."

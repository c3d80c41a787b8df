"""Read weights back through the generator's own kernels: the half of weight sync that runs beside the engine."""

import mmap
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from vantage_trainer.sync import HEAD, Entry, SyncError, is_table


def parts_of(model: nn.Module) -> dict[str, list[str]]:
    """Map each parameter of the engine's model to the Hugging Face tensors it is made of, in order."""
    packed: dict[str, list[str]] = getattr(model, "packed_modules_mapping", {})
    parts: dict[str, list[str]] = {}
    for name, _ in model.named_parameters(remove_duplicate=False):
        owner, _, leaf = name.rpartition(".")
        parent, _, module = owner.rpartition(".")
        parts[name] = [f"{parent}.{part}.{leaf}" for part in packed[module]] if module in packed else [name]
    return parts


def check_names(model: nn.Module, layout: list[Entry]) -> None:
    """Refuse a push that leaves a tensor out or brings one that nobody expects."""
    expected = {part for parts in parts_of(model).values() for part in parts}
    sent = {entry.name for entry in layout}
    if missing := sorted(expected - sent):
        raise SyncError(f"The push left out {_few(missing)}: the generator would go on with garbage there.")
    if unknown := sorted(sent - expected):
        raise SyncError(f"The push brought {_few(unknown)}, which the generator's model does not have.")


def _few(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def tensors_in(buffer: mmap.mmap, layout: list[Entry], dtype: torch.dtype) -> Iterator[tuple[str, Tensor]]:
    """Show the tensors that lie in a shared buffer, without copying them."""
    for entry in layout:
        count = torch.Size(entry.shape).numel()
        yield entry.name, torch.frombuffer(buffer, dtype=dtype, count=count, offset=entry.offset).view(entry.shape)


@torch.inference_mode()
def read_back(model: nn.Module, layout: list[Entry], dtype: torch.dtype) -> dict[str, Tensor]:
    """Compute, for every tensor sent, the slices asked for, with the kernels that generate."""
    entries = {entry.name: entry for entry in layout}
    found: dict[str, Tensor] = {}
    for name, parts in parts_of(model).items():
        module = model.get_submodule(name.rpartition(".")[0])
        asked = [entries[part] for part in parts]
        if len(asked[0].shape) != 2:
            found |= _whole(model.get_parameter(name), asked)
        elif is_table(name):
            found |= _looked_up(module, asked[0], model.get_parameter(name).device)
        else:
            found |= _multiplied(module, asked, dtype, model.get_parameter(name).device)
    return found


def _whole(parameter: Tensor, asked: list[Entry]) -> dict[str, Tensor]:
    pieces = parameter.detach().cpu().split([entry.shape[0] for entry in asked])
    return {entry.name: piece.clone() for entry, piece in zip(asked, pieces, strict=True)}


def _looked_up(module: Any, entry: Entry, device: torch.device) -> dict[str, Tensor]:
    rows = torch.tensor(entry.indices, device=device)
    return {entry.name: module.quant_method.embedding(module, rows).cpu()}


def _multiplied(module: Any, asked: list[Entry], dtype: torch.dtype, device: torch.device) -> dict[str, Tensor]:
    """Multiply one-hot rows by the module's packed weight: exact whatever the kernel."""
    columns = sorted({index for entry in asked for index in entry.indices})
    one_hot = torch.zeros(len(columns), asked[0].shape[1], dtype=dtype, device=device)
    one_hot[torch.arange(len(columns)), torch.tensor(columns)] = 1
    rows = module.quant_method.apply(module, one_hot, None).cpu()
    place = {column: row for row, column in enumerate(columns)}
    sizes = [entry.shape[0] for entry in asked]
    pieces = rows[:, : sum(sizes)].split(sizes, dim=1)
    return {
        entry.name: piece[[place[index] for index in entry.indices]] for entry, piece in zip(asked, pieces, strict=True)
    }


def repack_tied_head(model: nn.Module) -> None:
    """Refresh the packed copy that a head tied to the embeddings keeps of them."""
    head: Any = model.get_submodule(HEAD.removesuffix(".weight"))
    head.quant_method.process_weights_after_loading(head)

"""Checkpoints: whole or absent, verified when read, independent of ZeRO stage and number of ranks."""

import hashlib
import json
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from vantage_trainer.engine_state import MOMENTS, AdamState
from vantage_trainer.failure import Failure
from vantage_trainer.progress import Progress

FORMAT = 1
CHUNK = 1 << 22
KEEP = ".keep"  # in the checkpoints' folder: files here name those that the platform asks to keep
FLOAT_BYTES = 4
SPARE = 16 << 20  # bytes that are left for journals and for what a file system adds
CRITIC = "critic-"


@dataclass
class Snapshot:
    """A run at the end of a step; `critic` is there once a run with a critic has begun reinforcement learning."""

    progress: Progress
    adam: AdamState
    random: list[Tensor] = field(default_factory=list)
    reference: dict[str, Tensor] = field(default_factory=dict)
    critic: AdamState | None = None


def save(root: Path, snapshot: Snapshot, *, keep_last: int, keep_best: bool) -> Path:
    """Write beside, sync to disk, rename when whole, then prune; returns the checkpoint's folder."""
    folder = root / snapshot.progress.folder
    draft = root / f".{folder.name}.partial"
    for leftover in root.glob(".*.partial"):
        _remove(leftover)
    draft.mkdir(parents=True)
    try:
        _check_room(draft, snapshot)
        _write(draft, snapshot)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    _remove(folder)
    os.rename(draft, folder)
    _sync(root)
    prune(root, keep_last=keep_last, keep_best=keep_best)
    return folder


def load(folder: Path) -> Snapshot:
    """Read a checkpoint after comparing every file with its manifest; Failure where it cannot be used."""
    try:
        verify(folder)
        return _read(folder)
    except OSError as fault:
        raise _unusable(folder, f"cannot be read ({fault.strerror})") from None
    except (AttributeError, KeyError, TypeError, ValueError, SafetensorError):
        raise _unusable(folder, "holds something else than this version of Vantage writes") from None


def _read(folder: Path) -> Snapshot:
    content = json.loads((folder / "state.json").read_text())
    random = load_file(folder / "random.safetensors")
    reference = folder / "reference.safetensors"
    return Snapshot(
        progress=Progress.from_json(content["progress"]),
        adam=_read_adam(folder, "", content["adam_steps"]),
        random=[random[str(rank)] for rank in range(len(random))],
        reference=load_file(reference) if reference.exists() else {},
        critic=_read_adam(folder, CRITIC, content["critic_steps"]) if "critic_steps" in content else None,
    )


def load_parameters(folder: Path) -> dict[str, Tensor]:
    """Read a checkpoint's float32 parameters alone, by Hugging Face name."""
    verify(folder)
    return load_file(folder / "parameters.safetensors")


def load_last(root: Path) -> tuple[Snapshot | None, list[str]]:
    """Read the newest whole checkpoint; returns it with a sentence for each broken one that was set aside."""
    sentences: list[str] = []
    for folder in reversed(found(root)):
        try:
            snapshot = load(folder)
        except Failure as fault:
            sentences.append(fault.sentence)
            continue
        _set_aside(root, folder)
        return snapshot, sentences
    if sentences:
        raise Failure("bad_checkpoint", f"No checkpoint of this run can be read. {sentences[0]}")
    return None, []


def _set_aside(root: Path, last: Path) -> None:
    """Hide those after the last good one: pruning would keep them, as the newest, instead of what comes next."""
    for folder in found(root)[found(root).index(last) + 1 :]:
        hidden = root / f".{folder.name}.unread"
        _remove(hidden)
        folder.rename(hidden)


def found(root: Path) -> list[Path]:
    """List a run's checkpoints, oldest first: those of the warm start before those of the steps."""
    return sorted(root.glob("start-*")) + sorted(root.glob("step-*"))


def verify(folder: Path) -> None:
    """Raise Failure unless every file is there as it was written; OSError where one cannot be read."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text())
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, ValueError):
        raise _unusable(folder, "has no manifest: it is not whole") from None
    if manifest["format"] != FORMAT:
        raise _unusable(folder, f"was written by another version of Vantage (format {manifest['format']})")
    for name, digest in manifest["files"].items():
        path = folder / name
        if not path.is_file() or _digest(path) != digest:
            raise _unusable(folder, f"is damaged: {name} is not as it was written")


def _unusable(folder: Path, why: str) -> Failure:
    return Failure("bad_checkpoint", f"The checkpoint {folder.name} {why}.")


def check_fits(snapshot: Snapshot, weights: dict[str, Tensor]) -> None:
    """Raise Failure when the checkpoint is of another model."""
    ours = {name: tuple(value.shape) for name, value in weights.items()}
    theirs = {name: tuple(value.shape) for name, value in snapshot.adam.parameters.items()}
    different = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
    if different:
        raise Failure("other_model", f"The checkpoint is of another model: {different[0]} differs in name or shape.")


def prune(root: Path, *, keep_last: int, keep_best: bool) -> None:
    """Remove what neither the policy keeps nor the platform asks to keep."""
    folders = found(root)
    kept = {*folders[-keep_last:], *(folder for folder in folders if (root / KEEP / folder.name).exists())}
    if keep_best:
        scores = {folder: score for folder in folders if (score := _score(folder)) is not None}
        kept |= {max(scores, key=lambda folder: (scores[folder], folder.name))} if scores else set()
    for folder in folders:
        if folder not in kept:
            _remove(folder)


def _remove(path: Path) -> None:
    """Remove a folder, or the file that stands in its place."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _check_room(draft: Path, snapshot: Snapshot) -> None:
    """Raise Failure before the disk is full, not amid the writing."""
    needed, free = SPARE + _num_bytes(snapshot), shutil.disk_usage(draft).free
    if free < needed:
        raise Failure(
            "out_of_disk",
            f"The disk is full but for {free / 1e6:,.0f} MB where the node keeps its runs, and the next checkpoint "
            f"needs {needed / 1e6:,.0f} MB: free some space (old runs' checkpoints take most), then resume the run "
            "from its last checkpoint.",
        )


def _num_bytes(snapshot: Snapshot) -> int:
    adams = [snapshot.adam] + ([snapshot.critic] if snapshot.critic else [])
    tensors = [
        tensor for adam in adams for part in (adam.parameters, *adam.moments.values()) for tensor in part.values()
    ]
    return FLOAT_BYTES * sum(tensor.numel() for tensor in [*tensors, *snapshot.reference.values()])


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def _write(draft: Path, snapshot: Snapshot) -> None:
    content: dict[str, Any] = {"progress": snapshot.progress.to_json(), "adam_steps": snapshot.adam.steps}
    _write_adam(draft, "", snapshot.adam)
    if snapshot.critic is not None:
        _write_adam(draft, CRITIC, snapshot.critic)
        content["critic_steps"] = snapshot.critic.steps
    save_file({str(rank): state for rank, state in enumerate(snapshot.random)}, draft / "random.safetensors")
    if snapshot.reference:
        save_file(_plain(snapshot.reference), draft / "reference.safetensors")
    _write_json(draft / "state.json", content)
    files = {path.name: _digest(path) for path in draft.iterdir()}
    _write_json(draft / "manifest.json", {"format": FORMAT, "files": files})
    for path in [*draft.iterdir(), draft]:
        _sync(path)


def _write_adam(draft: Path, whose: str, state: AdamState) -> None:
    save_file(_plain(state.parameters), draft / f"{whose}parameters.safetensors", metadata={"format": "pt"})
    for moment in MOMENTS:
        save_file(_plain(state.moments[moment]), draft / f"{whose}{moment}.safetensors")


def _read_adam(folder: Path, whose: str, steps: int) -> AdamState:
    moments = {moment: load_file(folder / f"{whose}{moment}.safetensors") for moment in MOMENTS}
    return AdamState(load_file(folder / f"{whose}parameters.safetensors"), moments, steps)


def _plain(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().float().cpu().contiguous() for name, tensor in tensors.items()}


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content))


def _digest(path: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _score(folder: Path) -> float | None:
    try:
        return json.loads((folder / "state.json").read_text())["progress"]["score"]
    except (OSError, ValueError, KeyError):
        return None


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

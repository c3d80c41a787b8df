"""What this machine can compute with: its GPUs, or slots of its processor's cores; all of it, or what was chosen."""

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

import psutil

from vantage.nodes.nvidia import gpus

Device = dict[str, str | int | list[int]]


@dataclass(frozen=True)
class Choice:
    """What the command line says that a node gives out; nothing said: every GPU, or else the processor as one slot."""

    devices: str = ""  # cuda:0,cuda:1
    slots: int | None = None
    cores: str = ""  # 0-3,6


def devices(choice: Choice) -> list[Device]:
    """Return the chosen devices; ValueError says which of them this machine has not."""
    cores = _chosen_cores(choice.cores)
    if wanted := choice.devices or os.environ.get("VANTAGE_DEVICES", ""):
        if choice.slots is not None:
            raise ValueError("Give either --devices, for GPUs, or --slots, for the processor.")
        return [device | _cpus(cores) for device in _chosen_gpus(wanted)]
    if choice.slots is not None:
        return _slots(choice.slots, cores or _allowed())
    return [device | _cpus(cores) for device in gpus()] or [_slot("cpu0", cores or _allowed()) | _cpus(cores)]


def _chosen_gpus(wanted: str) -> list[Device]:
    known = {str(device["id"]): device for device in gpus()}
    ids = list(dict.fromkeys(name.strip().replace(":", "") for name in wanted.split(",") if name.strip()))
    if missing := [name for name in ids if name not in known]:
        has = ", ".join(known) or "none: nvidia-smi lists no GPU; choose --slots for the processor instead"
        raise ValueError(f"This machine has no GPU {', '.join(missing)}. It has {has}.")
    return [known[name] for name in ids]


def _chosen_cores(text: str) -> list[int]:
    """Read 0-3,6; empty: none are chosen."""
    if not text:
        return []
    ranges = [re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", piece.strip()) for piece in text.split(",")]
    pairs = [(int(found[1]), int(found[2] or found[1])) for found in ranges if found]
    if len(pairs) < len(ranges) or any(low > high for low, high in pairs):
        raise ValueError(f"{text} names no cores: write them as in --cores 0-3,6.")
    wanted = {core for low, high in pairs for core in range(low, high + 1)}
    if missing := wanted - set(_allowed()):
        has = ", ".join(map(str, _allowed()))
        raise ValueError(f"This machine has no core {', '.join(map(str, sorted(missing)[:9]))}. It has {has}.")
    return sorted(wanted)


def _slots(number: int, cores: list[int]) -> list[Device]:
    """Share the cores out among slots, each with its own: side by side runs then do not slow each other down."""
    if not 1 <= number <= len(cores):
        raise ValueError(f"{len(cores)} cores make 1 to {len(cores)} slots, a core to each at least, not {number}.")
    bounds = [place * len(cores) // number for place in range(number + 1)]
    parts = [cores[low:high] for low, high in zip(bounds, bounds[1:], strict=False)]
    return [_slot(f"cpu{place}", part) | _cpus(part) for place, part in enumerate(parts)]


def _slot(name: str, cores: list[int]) -> Device:
    memory = psutil.virtual_memory().total
    return {"id": name, "kind": "cpu", "name": _processor(), "memory": memory, "cores": len(cores)}


def _cpus(cores: list[int]) -> Device:
    """The cores that what runs on a device is kept to; where none were chosen, all."""
    return {"cpus": cores} if cores else {}


def _allowed() -> list[int]:
    return sorted(os.sched_getaffinity(0))


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{named[0] if named else platform.machine()}, {psutil.cpu_count()} cores"

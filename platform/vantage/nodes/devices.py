"""What this machine can compute with, and how busy it is."""

import os
import platform
import shutil
import subprocess
from pathlib import Path

import psutil

Device = dict[str, str | int]
QUERY = ["nvidia-smi", "--query-gpu=index,name,memory.total", "--format=csv,noheader,nounits"]


def devices() -> list[Device]:
    """Return $VANTAGE_DEVICES (names, comma-separated), or the GPUs, or one slot on the CPU."""
    if chosen := os.environ.get("VANTAGE_DEVICES"):
        return [_chosen(name.strip()) for name in chosen.split(",") if name.strip()]
    return _gpus() or [_chosen("cpu0")]


def usage(home: Path) -> dict[str, float | list[int]]:
    """Return use of CPU (a fraction since the last call), memory and the disk of the home folder."""
    memory, disk = psutil.virtual_memory(), shutil.disk_usage(home)
    return {
        "cpu": psutil.cpu_percent() / 100,
        "memory": [memory.total - memory.available, memory.total],
        "disk": [disk.used, disk.total],
    }


def _chosen(name: str) -> Device:
    kind = "cuda" if name.startswith("cuda") else "cpu"
    cores = {} if kind == "cuda" else {"cores": psutil.cpu_count() or 1}
    return {"id": name, "kind": kind, "name": _processor(), "memory": psutil.virtual_memory().total} | cores


def _gpus() -> list[Device]:
    if not shutil.which(QUERY[0]):
        return []
    told = subprocess.run(QUERY, capture_output=True, text=True, timeout=30)
    rows = [line.split(", ") for line in told.stdout.splitlines()] if told.returncode == 0 else []
    return [
        {"id": f"cuda{index}", "kind": "cuda", "name": name, "memory": int(float(mebibytes)) * 2**20}
        for index, name, mebibytes in rows
    ]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{named[0] if named else platform.machine()}, {psutil.cpu_count()} cores"

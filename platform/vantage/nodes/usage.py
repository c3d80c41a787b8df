"""How busy this machine is."""

import shutil
from pathlib import Path

import psutil


def usage(home: Path) -> dict[str, float | list[int]]:
    """Return use of CPU (a fraction since the last call), memory and the disk of the home folder."""
    memory, disk = psutil.virtual_memory(), shutil.disk_usage(home)
    return {
        "cpu": psutil.cpu_percent() / 100,
        "memory": [memory.total - memory.available, memory.total],
        "disk": [disk.used, disk.total],
    }

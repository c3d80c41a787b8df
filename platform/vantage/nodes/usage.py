"""How busy this machine is, looked at every few seconds in a thread: a driver that hangs then holds up nothing."""

import logging
import shutil
import time
from pathlib import Path
from threading import Thread
from typing import TypedDict

import psutil
from django.conf import settings

from vantage.nodes.nvidia import MEBIBYTE, query

logger = logging.getLogger(__name__)


class Usage(TypedDict):
    """One look at a machine: what stands in Node.usage."""

    cpu: float  # a fraction
    memory: list[float]  # used and all, in bytes
    disk: list[float]
    gpus: dict[str, list[float]]  # by device: busy (a fraction), memory used and all, in bytes


class Gauge(Thread):
    """Looks at this machine for as long as the process lives."""

    def __init__(self, home: Path) -> None:
        super().__init__(name="gauge", daemon=True)
        self.home = home
        self._newest: Usage | None = None
        psutil.cpu_percent()  # its first answer has nothing to compare with

    def run(self) -> None:
        while True:
            time.sleep(settings.USAGE_SECONDS)
            try:
                self._newest = usage(self.home)
            except OSError as error:
                logger.warning("The use of this machine cannot be read: %s", error)

    def take(self) -> Usage | None:
        """Return what was seen since the last time; None: nothing new."""
        newest, self._newest = self._newest, None
        return newest


def usage(home: Path) -> Usage:
    """Return use of CPU (a fraction since the last call), memory, the disk of the home folder, and each GPU."""
    memory, disk = psutil.virtual_memory(), shutil.disk_usage(home)
    return {
        "cpu": psutil.cpu_percent() / 100,
        "memory": [memory.total - memory.available, memory.total],
        "disk": [disk.total - disk.free, disk.total],
        "gpus": gpu_usage(),
    }


def gpu_usage() -> dict[str, list[float]]:
    """Return of each GPU the share of time that it was busy, and its memory in use and in all, in bytes."""
    found = {}
    for index, *told in query("index,utilization.gpu,memory.used,memory.total"):
        try:
            busy, used, whole = map(float, told)
        except ValueError:  # "[N/A]", as of a GPU that is shared out
            continue
        found[f"cuda{index}"] = [busy / 100, used * MEBIBYTE, whole * MEBIBYTE]
    return found

"""What the trainer does at this moment, in one line of a small file: for whoever looks in while phases are short."""

import json
import os
import time
from pathlib import Path

WIDTH = 160  # bytes; the line is rewritten in place, so that it never needs more disk


class Now:
    """The file `now` of one attempt."""

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        self._told: tuple[int, str] | None = None

    def tell(self, step: int, phase: str) -> None:
        """Write phase, step and since when, unless they stand there already."""
        if self._told != (step, phase):
            self._told = (step, phase)
            line = json.dumps({"phase": phase, "step": step, "since": time.time()})
            os.pwrite(self._handle, f"{line:<{WIDTH - 1}}\n".encode(), 0)

    def close(self) -> None:
        os.close(self._handle)

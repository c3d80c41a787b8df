"""Stopping when asked, by SIGTERM, Ctrl-C or the stop file: between steps, or amid work that may be abandoned."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

LOOK_SECONDS = 0.3


class Stopped(Exception):
    """Somebody asked the run to stop."""


class Stop:
    """Watch for the wish to stop; raise only where the caller says that work may be abandoned."""

    def __init__(self, file: Path) -> None:
        self.asked = False
        self._abandonable = False
        self._file = file
        self._over = threading.Event()

    def watch(self) -> None:
        """Listen from now on; call it in the main thread."""
        signal.signal(signal.SIGTERM, self._heard)
        signal.signal(signal.SIGINT, self._heard)
        threading.Thread(target=self._look, daemon=True).start()

    def close(self) -> None:
        self._over.set()

    def check(self) -> None:
        """Raise Stopped when the run was asked to stop."""
        if self.asked:
            raise Stopped

    @contextmanager
    def abandonable(self) -> Iterator[None]:
        """Let a wish to stop interrupt what happens inside, at once."""
        self.check()
        self._abandonable = True
        try:
            yield
        finally:
            self._abandonable = False

    def _heard(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        if self._abandonable:
            self._abandonable = False
            raise Stopped

    def _look(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            if self._file.exists():
                os.kill(os.getpid(), signal.SIGTERM)
                return

"""What the two embedded servers share: start in a session of its own, adopt what still runs, wait until it answers."""

import signal
import subprocess
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import BinaryIO

from vantage.processes import Process, end, inhabitants

READY_SECONDS = 60.0  # recovery after a crash included
LOG_LIMIT = 10 * 2**20  # bytes; a longer log is begun anew at the next start, the old one kept beside it


class Server(ABC):
    """A server that lives in one folder: whoever has it as working directory is the server or a part of it."""

    name: str
    program: str  # the file name of its executable
    folder: Path
    log: Path
    stop_signal = signal.SIGTERM

    def __init__(self) -> None:
        self.process: Process | None = None
        self._child: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def main_pid(self) -> int | None:
        """The pid that the folder names as its server's, whether or not it lives."""

    @abstractmethod
    def answers(self) -> bool:
        """Say whether it takes a command."""

    @abstractmethod
    def spawn(self) -> subprocess.Popen[bytes]:
        """Start it, without waiting."""

    def alive(self) -> bool:
        """Say whether its main process runs."""
        if self._child is not None:
            self._child.poll()
        return self.process is not None and self.process.alive()

    def start(self) -> None:
        """Adopt the server that still runs in its folder, or end what is left of one and start it."""
        self.process = self._survivor()
        if self.process is not None and self._ready():
            return
        self.heal()
        self._child = self.spawn()
        self.process = Process.of(self._child.pid)
        if not self._ready():
            self.stop()
            raise ValueError(f"{self.name} does not start; the end of {self.log} says:\n{self.last_words()}")

    def _survivor(self) -> Process | None:
        living = {process.pid: process for process in inhabitants(self.folder, self.program)}
        pid = self.main_pid()
        return living.get(pid) if pid is not None else None

    def _ready(self) -> bool:
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline and self.alive():
            if self.answers():
                return True
            time.sleep(0.05)
        return False

    def heal(self) -> None:
        """End the parts of a killed server, which would keep a new one from its files."""
        end(inhabitants(self.folder, self.program), signal.SIGQUIT, 1)

    def stop(self, seconds: float = 20) -> None:
        """Stop it, and whatever is left in its folder."""
        if running := self.process or self._survivor():
            end([running], self.stop_signal, seconds)
        self.heal()
        if self._child is not None:
            self._child.wait(5)
        self.process = self._child = None

    def open_log(self) -> BinaryIO:
        """Open the log for appending, readable by its owner alone."""
        if self.log.exists() and self.log.stat().st_size > LOG_LIMIT:
            self.log.rename(self.log.with_suffix(".old"))
        self.log.touch(mode=0o600)
        return self.log.open("ab")

    def last_words(self, num_lines: int = 8) -> str:
        """The last lines of the log."""
        if not self.log.exists():
            return "(nothing)"
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-num_lines:])

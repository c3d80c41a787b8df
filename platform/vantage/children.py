"""The processes that `vantage up` starts and starts again when they die."""

import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from vantage.processes import Process, end, of_session

FIRST_DELAY, LONGEST_DELAY = 0.5, 30.0  # seconds before a dead child is started again, doubled each time
STEADY_SECONDS = 60.0  # a child that has lived so long begins with the first delay again


@dataclass
class Child:
    """One process in a session of its own, with what it started there."""

    name: str
    command: list[str]
    environment: dict[str, str]
    folder: Path
    log: Path
    inherited: tuple[int, ...] = ()
    process: Process | None = None
    num_deaths: int = 0
    _popen: subprocess.Popen[bytes] | None = None
    _started: float = 0.0
    _due: float = field(default=0.0)

    def start(self) -> None:
        self.log.touch(mode=0o600)
        with self.log.open("ab") as log:
            self._popen = subprocess.Popen(
                self.command,
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=self.inherited,
            )
        self.process = Process.of(self._popen.pid)
        self._started, self._due = time.monotonic(), 0.0

    def alive(self) -> bool:
        return self._popen is not None and self._popen.poll() is None

    def revive(self) -> str | None:
        """Start it again when it is dead and its delay is over; returns what there is to tell."""
        if self.alive():
            return None
        if not self._due:
            return self._mourn()
        if time.monotonic() >= self._due:
            self.start()
        return None

    def _mourn(self) -> str:
        self.end_rest()
        if time.monotonic() - self._started > STEADY_SECONDS:
            self.num_deaths = 0
        delay = min(LONGEST_DELAY, FIRST_DELAY * 2**self.num_deaths)
        self.num_deaths += 1
        self._due = time.monotonic() + delay
        return f"{self.name} ended ({self._outcome()}) and starts again in {delay:.1f} s; its log: {self.log}"

    def _outcome(self) -> str:
        code = self._popen.returncode if self._popen else 0
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def ask(self) -> None:
        """Ask it to end."""
        if self.process:
            self.process.send(signal.SIGTERM)

    def end_rest(self) -> None:
        """Kill what is left of its session; what went into a session of its own stays."""
        if self.process:
            end(of_session(self.process.pid), signal.SIGKILL, 5)
        if self._popen:
            self._popen.wait(5)

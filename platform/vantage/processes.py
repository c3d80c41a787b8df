"""Know a process again: a pid alone may be somebody else's by now, a pid with its start time is not."""

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
POLL = 0.02  # seconds between two looks at a process that is not our child


@dataclass(frozen=True)
class Stat:
    """What /proc says of a process: one-letter state, session, start in clock ticks since boot."""

    state: str
    session: int
    started: int


def stat(pid: int) -> Stat | None:
    try:
        fields = (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return Stat(state=fields[0], session=int(fields[3]), started=int(fields[19]))


@dataclass(frozen=True)
class Process:
    """One process, told apart from a later one with the same pid."""

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> "Process":
        """Name a living process; ProcessLookupError when there is none."""
        found = stat(pid)
        if found is None:
            raise ProcessLookupError(pid)
        return cls(pid, found.started)

    def alive(self) -> bool:
        """Say whether it still runs; a zombie does not."""
        found = stat(self.pid)
        return found is not None and found.started == self.started and found.state not in "ZX"

    def send(self, number: signal.Signals) -> None:
        """Signal it, unless it is gone."""
        if self.alive():
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return

    def wait(self, seconds: float) -> bool:
        """Wait for its end; False when it still runs."""
        deadline = time.monotonic() + seconds
        while self.alive():
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL)
        return True


def end(processes: Iterable[Process], first: signal.Signals, seconds: float) -> None:
    """Ask with the first signal, give all of them together so many seconds, then kill."""
    chosen = list(processes)
    for process in chosen:
        process.send(first)
    deadline = time.monotonic() + seconds
    for process in chosen:
        if not process.wait(max(0.0, deadline - time.monotonic())):
            process.send(signal.SIGKILL)
            process.wait(5)


def everything() -> Iterator[Process]:
    """Every process that is no zombie, this one left out."""
    for entry in PROC.iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            found = stat(int(entry.name))
            if found is not None and found.state not in "ZX":
                yield Process(int(entry.name), found.started)


def inhabitants(folder: Path, program: str) -> list[Process]:
    """The processes of a program whose working directory is this folder: a database server and all its backends."""
    try:
        wanted = folder.stat()
    except FileNotFoundError:
        return []
    return [process for process in everything() if _stands_in(process.pid, wanted, program)]


def _stands_in(pid: int, wanted: os.stat_result, program: str) -> bool:
    try:
        found = (PROC / str(pid) / "cwd").stat()
        executable = (PROC / str(pid) / "exe").readlink().name
    except OSError:
        return False
    is_it = executable.removesuffix(" (deleted)") == program  # the environment may have been made anew meanwhile
    return is_it and (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino)


def of_session(leader: int) -> list[Process]:
    """The processes of a session, its leader dead or alive."""
    return [process for process in everything() if (found := stat(process.pid)) and found.session == leader]


def carrying(name: str, value: str) -> list[Process]:
    """The processes started with this environment variable: what was begun below, wherever it went since."""
    return [process for process in everything() if f"{name}={value}".encode() in _environment(process.pid)]


def _environment(pid: int) -> list[bytes]:
    try:
        return (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def reap(children: Iterable[subprocess.Popen[bytes]]) -> None:
    """Bury the dead that nobody waits for: a container's first process inherits every orphan; children keep theirs."""
    ours = {child.pid: child for child in children if child.returncode is None}
    while found := _ended():
        if found in ours:
            ours.pop(found).poll()
        else:
            os.waitpid(found, 0)


def _ended() -> int | None:
    """The pid of a child that has ended and is still to be buried."""
    try:
        found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # there are no children at all
        return None
    return found.si_pid if found else None

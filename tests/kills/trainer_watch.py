"""Watch through the process table and the kernel's locks that never two trainers work on one run."""

import re
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from vantage.processes import Process, stat

LOOK_SECONDS = 0.03
YOUNG_SECONDS = 2.0  # a process this young may still be about to become another program
TRAINER = "vantage_trainer.train"


@dataclass
class Watcher:
    """`overlaps` says in sentences what must not be; `most` is the largest number of trainers seen at once."""

    runs: Path
    overlaps: list[str] = field(default_factory=list)
    most: int = 0
    num_looks: int = 0
    num_trainers: int = 0
    _known: dict[int, float] = field(default_factory=dict)  # pid -> when it was first seen
    _trainers: dict[Process, str] = field(default_factory=dict)  # living trainers and their runs
    _helpers: set[Process] = field(default_factory=set)  # what trainers start looks like one until it has become itself
    _over: threading.Event = field(default_factory=threading.Event)
    _suspected: set[str] = field(default_factory=set)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            self._look()
            self.num_looks += 1

    def _look(self) -> None:
        self._find_new()
        self._trainers = {process: run for process, run in self._trainers.items() if _works(process)}
        by_run: dict[str, list[int]] = {}
        for process, run in self._trainers.items():
            by_run.setdefault(run, []).append(process.pid)
        self.most = max([self.most, *map(len, by_run.values())])
        for run, pids in by_run.items():
            if len(pids) > 1:
                self._record(f"Trainers {sorted(pids)} of run {run} lived at once.")
        self._compare_locks(by_run)

    def _find_new(self) -> None:
        now = time.monotonic()
        pids = {int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()}
        self._known = {pid: seen for pid, seen in self._known.items() if pid in pids}
        for pid in pids:
            if now - self._known.setdefault(pid, now) < YOUNG_SECONDS and (run := self._run_of(pid)):
                self._sort(pid, run)

    def _sort(self, pid: int, run: str) -> None:
        process = _named(pid)
        if process is None or process in self._trainers or process in self._helpers:
            return
        parent = _parent(pid)
        if parent in {trainer.pid for trainer, its in self._trainers.items() if its == run}:
            self._helpers.add(process)
            return
        self._trainers[process] = run
        self.num_trainers += 1

    def _run_of(self, pid: int) -> str | None:
        """The run that a process trains, if it is a trainer of this home."""
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            return None
        folders = [word for word in words if word.startswith(f"{self.runs}/")]
        return Path(folders[0]).name if folders and TRAINER in words else None

    def _compare_locks(self, by_run: dict[str, list[int]]) -> None:
        """Hold the kernel's locks against the process table; what is seen twice running is no matter of an instant."""
        holders, suspected = _holders(), set()
        for lock in self.runs.glob("*/trainer.lock"):
            run = lock.parent.name
            for pid in holders.get(lock.stat().st_ino, []):
                if pid not in by_run.get(run, []):
                    suspected.add(f"Process {pid} holds the trainer's lock of run {run} and is none of its trainers.")
        for sentence in suspected & self._suspected:
            self._record(sentence)
        self._suspected = suspected

    def _record(self, sentence: str) -> None:
        if sentence not in self.overlaps:
            self.overlaps.append(sentence)


def _named(pid: int) -> Process | None:
    try:
        return Process.of(pid)
    except ProcessLookupError:
        return None


def _works(process: Process) -> bool:
    """Say whether any thread of it still does; the first one may be dead while others yet hold files and locks."""
    if process.alive():
        return True
    found = stat(process.pid)
    if found is None or found.started != process.started:
        return False
    return any(_state(task) not in "ZX" for task in Path(f"/proc/{process.pid}/task").glob("*/stat"))


def _state(file: Path) -> str:
    try:
        return file.read_text(errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _holders() -> dict[int, list[int]]:
    """Who holds exclusive locks, by the file's inode."""
    found: dict[int, list[int]] = {}
    for line in Path("/proc/locks").read_text().splitlines():
        parts = re.match(r"\d+: FLOCK +ADVISORY +WRITE +(\d+) +\w+:\w+:(\d+) ", line)
        if parts:
            found.setdefault(int(parts[2]), []).append(int(parts[1]))
    return found

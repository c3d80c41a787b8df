"""One attempt in its run folder, at training or at another kind of job: its lock, its log, its wish to stop, its end.

Nothing heavy is imported here: what an attempt does is imported once the lock is held.
"""

import argparse
import fcntl
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from vantage_trainer.failure import explained
from vantage_trainer.journal import Journal
from vantage_trainer.stopping import Stop, Stopped

UNUSABLE, LOCKED = 2, 3
THREADS = {"OMP_WAIT_POLICY": "PASSIVE", "KMP_BLOCKTIME": "0", "TOKENIZERS_PARALLELISM": "false"}
SUCCEEDED, STOPPED, FAILED = "succeeded", "stopped", "failed"
DRAFT = ".exit.json"
REPORT_BYTES = 4096  # reserved at the start: a full disk may be what there is to report


@dataclass(frozen=True)
class Told:
    """How an attempt ended: an outcome, a code for machines and a sentence for people."""

    outcome: str
    code: str
    sentence: str


@dataclass
class Attempt:
    """What an attempt works with; `step` and `let_go` are set by what it does."""

    folder: Path
    place: Path
    lock: IO[str]
    stop: Stop
    journal: Journal | None = None
    step: Callable[[], int] = lambda: 0
    let_go: Callable[[bool], None] = lambda failed: None

    @property
    def number(self) -> int:
        return int(self.place.name)

    def open_journal(self) -> Journal:
        self.journal = Journal(self.place / "journal")
        return self.journal


Work = Callable[[Attempt], Told]


def arguments(module: str, says: str) -> tuple[Path, int]:
    """Read RUN_FOLDER and --attempt from the command line."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=says)
    parser.add_argument("run_folder", type=lambda text: Path(text).resolve(), help="the run's folder")
    parser.add_argument("--attempt", type=int, default=1, help="number of this attempt")
    told = parser.parse_args()
    return told.run_folder, told.attempt


def set_threads() -> None:
    """Say how threads wait, before anything that starts some is imported."""
    for name, value in THREADS.items():
        os.environ.setdefault(name, value)


def live(folder: Path, number: int, work: Work, *, nothing_done: str) -> int:
    """Do the work if nobody else works in this folder; returns the process' exit status."""
    place = folder / "attempts" / str(number)
    try:
        lock = _lock(folder)
        if lock is None:
            print("Another trainer is working on this run, so this one ends.", file=sys.stderr)
            return LOCKED
        place.mkdir(parents=True, exist_ok=True)
        (place / DRAFT).write_text(" " * REPORT_BYTES)
    except OSError as fault:
        print(f"{folder} cannot be used as a run folder ({fault.strerror}): check the path.", file=sys.stderr)
        return UNUSABLE
    with lock:
        return _conduct(Attempt(folder, place, lock, Stop(place / "stop")), work, nothing_done)


def leave(status: int) -> None:
    """End the process though engines leave threads behind that would keep it."""
    with suppress(OSError):
        sys.stdout.flush()
    os._exit(status)


def _conduct(attempt: Attempt, work: Work, nothing_done: str) -> int:
    """Live one attempt and write how it ended."""
    console = _log_to(attempt.place / "trainer.log")
    try:
        attempt.stop.watch()
        told = work(attempt)
    except Stopped:
        told = Told(STOPPED, "stopped", nothing_done)
    except BaseException as fault:  # whatever it is, the end must be written and told in a sentence
        with suppress(OSError):
            traceback.print_exc()
        told = Told(FAILED, *explained(fault))
    failed = told.outcome == FAILED
    _write_end(attempt.place, {**vars(told), "step": attempt.step(), "time": time.time()})
    with suppress(OSError):
        print(told.sentence, file=console, flush=True)
    attempt.stop.close()
    attempt.let_go(failed)
    if attempt.journal is not None:
        with suppress(OSError):
            attempt.journal.close()
    return 1 if failed else 0


def _lock(folder: Path) -> IO[str] | None:
    """Take the run's lock, which no child inherits; None when somebody has it."""
    lock = (folder / "trainer.lock").open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock


def _log_to(path: Path) -> IO[str]:
    """Send everything that is printed to the log; returns where it went before."""
    console = os.fdopen(os.dup(1), "w")
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(handle, stream)
    os.close(handle)
    return console


def _write_end(place: Path, content: dict[str, object]) -> None:
    """Write the report over the room that was kept for it, so that a full disk can be told."""
    try:
        with (place / DRAFT).open("r+b") as file:
            file.write(json.dumps(content).encode())
            file.truncate()
        os.replace(place / DRAFT, place / "exit.json")
    except OSError:  # the sentence still goes to the console
        with suppress(OSError):
            traceback.print_exc()

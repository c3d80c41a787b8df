"""The run folder on the node: paths and locks. What lies in it is the contract with the trainer."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from django.conf import settings

from vantage.processes import Process

JOURNALS = ("metrics", "samples", "events")
STEPS = "step-"  # how the name of a checkpoint of a training step begins; one amid the warm start: start-


@dataclass(frozen=True)
class RunFolder:
    path: Path

    @classmethod
    def of(cls, run_pk: int) -> "RunFolder":
        return cls(Path(settings.HOME) / "runs" / str(run_pk))

    @property
    def spec(self) -> Path:
        return self.path / "spec.json"

    @property
    def job(self) -> Path:
        """What stands in place of the spec for a kind of job other than training."""
        return self.path / "job.json"

    @property
    def output(self) -> Path:
        """Files that a job made, to download."""
        return self.path / "output"

    @property
    def trainer_lock(self) -> Path:
        return self.path / "trainer.lock"

    @property
    def supervisor_lock(self) -> Path:
        return self.path / "supervisor.lock"

    @property
    def parent(self) -> Path:
        """Where a fork finds the checkpoint that it begins with."""
        return self.path / "parent"

    @property
    def keep(self) -> Path:
        """Files here name checkpoints that the trainer has to keep, whatever its policy."""
        return self.path / "checkpoints" / ".keep"

    def data(self, name: str) -> Path:
        return self.path / "data" / f"{name}.jsonl"

    def attempt(self, number: int) -> "AttemptFolder":
        return AttemptFolder(self.path / "attempts" / str(number))

    def checkpoints(self) -> set[str]:
        """Return the whole checkpoints, as paths in this folder; the name of a part-written one begins with a dot."""
        return {f"checkpoints/{path.name}" for path in (self.path / "checkpoints").glob("st*-*")}


@dataclass(frozen=True)
class AttemptFolder:
    path: Path

    def journal(self, name: str) -> Path:
        return self.path / "journal" / f"{name}.jsonl"

    @property
    def log(self) -> Path:
        return self.path / "trainer.log"

    @property
    def exit(self) -> Path:
        return self.path / "exit.json"

    @property
    def now(self) -> Path:
        """What the trainer does at this moment: phase, step and since when."""
        return self.path / "now"

    @property
    def stop(self) -> Path:
        return self.path / "stop"

    @property
    def trainer(self) -> Path:
        """Who the trainer is: pid and start time."""
        return self.path / "trainer.json"


@contextmanager
def held(lock: Path) -> Iterator[IO[str] | None]:
    """Hold a lock file; None: another process holds it. A killed holder frees it, whatever it left behind."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with open(lock, "a+", opener=_private) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        yield file


def sign(lock: IO[str], node: str) -> None:
    """Write into a held lock who holds it."""
    me = Process.of(os.getpid())
    lock.truncate(0)
    lock.write(json.dumps({"pid": me.pid, "started": me.started, "node": node}))
    lock.flush()


def holder(lock: Path, node: str) -> Process | None:
    """Return the living process of this node that signed the lock, if it is held at all."""
    try:
        told = json.loads(lock.read_text()) if is_held(lock) else {}
        process = Process(told["pid"], told["started"])
        return process if told["node"] == node and process.alive() else None
    except (OSError, ValueError, KeyError):
        return None


def is_held(lock: Path) -> bool:
    """Tell whether a living process holds the lock; asks with a shared lock for an instant."""
    if not lock.exists():
        return False
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def write_whole(path: Path, text: str) -> None:
    """Write a file that is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(text, encoding="utf-8", errors="surrogatepass")
    beside.replace(path)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)

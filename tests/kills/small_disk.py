"""A run on a disk of its own that fills up while a checkpoint or the journal is written."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cell import RECOVERY_SECONDS, Fault, Outcome, Target, patient, until
from hard_cases import Case, await_news
from moments import now
from run_facts import resumption
from vantage.nodes.models import Node
from vantage.runs.resuming import resume
from vantage.runs.states import Status
from whole_site import Site

SIZE = 96 << 20
FILLER = "filler"
LEAVE = 1 << 20  # bytes: too few for a checkpoint, enough for the journal


@contextmanager
def on_small_disk(site: Site) -> Iterator[Target]:
    """Queue a run whose folder is a small disk, and let the nodes have it; OSError where this user may mount none."""
    Node.objects.update(paused=True)
    target = Target(site, "full disk")
    target.folder.mkdir(mode=0o700, parents=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=0700", "none", target.folder]).returncode:
        raise OSError("no small disk could be mounted")
    try:
        Node.objects.update(paused=False)
        yield target
    finally:
        subprocess.run(["umount", "--lazy", target.folder])


def amid_checkpoint(target: Target, outcome: Outcome) -> str:
    return _fill_and_free(target, outcome, LEAVE)


def amid_journal(target: Target, outcome: Outcome) -> str:
    until(lambda: _writes_lines(target), "No step began", RECOVERY_SECONDS)
    return _fill_and_free(target, outcome, 0)


CASES = (
    Case("full disk", "checkpoint", amid_checkpoint, costs_attempt=True),
    Case("full disk", "journal", amid_journal, costs_attempt=True),
)


def _writes_lines(target: Target) -> bool:
    """Its next words are lines of the journal, not a checkpoint."""
    moment = now(target.folder)
    return moment is not None and moment.phase in ("warm_start", "generating")


def _fill_and_free(target: Target, outcome: Outcome, leave: int) -> str:
    """Fill the disk until the run says so, free it and resume as a person does."""
    attempt = target.run().attempt
    _fill(target.folder, leave)
    until(lambda: target.run().status == Status.FAILED, "The run did not notice the full disk", RECOVERY_SECONDS)
    told = target.run()
    (target.folder / FILLER).unlink()
    if "disk is full" not in told.sentence.lower():
        raise Fault(f"It failed with other words: {told.sentence}")
    if not patient(lambda: resume(target.run())):
        raise Fault("It could not be resumed.")
    await_news(target, time.time(), outcome, attempt + 1)
    return f"failed ({told.code}), said that the disk is full; resumed by a person: {resumption(target.run())}"


def _fill(folder: Path, leave: int) -> None:
    """Take all room but so much; the filler grows in small pieces at the end, for what is written meanwhile."""
    with (folder / FILLER).open("wb") as file:
        while (room := _room(folder) - leave) > 0:
            try:
                os.write(file.fileno(), b"\0" * min(room, 1 << 20))
            except OSError:
                return


def _room(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize

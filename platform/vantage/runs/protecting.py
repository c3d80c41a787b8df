"""Checkpoints that waiting forks and jobs begin with are kept, though their run works on and prunes."""

from collections.abc import Iterable

from django.db.models import Q

from vantage.runs.folder import STEPS, RunFolder
from vantage.runs.models import Run
from vantage.runs.querysets import RunQuerySet
from vantage.runs.states import Kind, Status

WAITING = (Status.QUEUED, Status.STARTING)  # once at work they have a checkpoint of their own


def waiting_on(runs: Iterable[int]) -> RunQuerySet:
    """Forks and jobs that have yet to take what they need from one of these runs."""
    takes = Q(parent_step__isnull=False) | ~Q(kind=Kind.TRAIN)
    return Run.objects.filter(takes, parent__in=runs, status__in=WAITING, deleted=None)


def wanted(run: int) -> set[str]:
    """Name the checkpoints of a run that others wait for."""
    found = waiting_on([run]).values_list("kind", "parent_step", "spec")
    names = (f"{STEPS}{step:06d}" if kind == Kind.TRAIN else spec.get("checkpoint") for kind, step, spec in found)
    return {name for name in names if name}


def protect(run: int, folder: RunFolder) -> None:
    """Tell the trainer, by a file each, which checkpoints to keep, and take back what nobody waits for any more."""
    names, kept = wanted(run), {path.name for path in folder.keep.glob("*")}
    for name in names - kept:
        folder.keep.mkdir(parents=True, exist_ok=True)
        (folder.keep / name).touch()
    for name in kept - names:
        (folder.keep / name).unlink(missing_ok=True)

"""Write the run folder, and settle from which checkpoint an attempt goes on."""

import json

from django.db import transaction
from django.db.models import IntegerField, Value
from django.db.models.functions import Coalesce, Least, Now

from vantage.datasets.models import DatasetVersion
from vantage.runs.folder import STEPS, RunFolder, write_whole
from vantage.runs.forking import place_checkpoint, place_parent
from vantage.runs.models import Attempt, Checkpoint, Run
from vantage.runs.states import Kind
from vantage.runs.stored_samples import write_samples

NOTHING = -(2**30)  # superseded_after of an attempt that was repeated whole; this + n: all but n warm-start steps


def write_folder(run: Run, folder: RunFolder) -> None:
    """Write data and spec once; the spec comes last, so a folder that has it is whole."""
    if folder.spec.exists() or folder.job.exists():
        return
    folder.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, version in run.datasets.items():
        folder.data(name).parent.mkdir(exist_ok=True)
        DatasetVersion.objects.get(pk=version).write_jsonl(folder.data(name))
    if run.kind == Kind.RESCORE and run.parent is not None:
        write_samples(run.parent, folder.data("samples"))
    if run.kind == Kind.TRAIN:
        place_parent(run, folder)
        write_whole(folder.spec, json.dumps(run.spec))
    else:
        write_whole(folder.job, json.dumps(_job(run, folder)))


def _job(run: Run, folder: RunFolder) -> dict[str, object]:
    """What job.json tells: the spec, and where on this node lies what the job works on."""
    parent = RunFolder.of(run.parent_id).path if run.parent_id else None
    name = run.spec.get("checkpoint")
    if parent and name:
        place_checkpoint(parent / "checkpoints" / name, folder.parent)
    place = str(folder.parent / name) if parent and name else None
    return {"spec": run.spec, "parent": parent and str(parent), "checkpoint": place}


def begin(attempt: Attempt) -> None:
    """Say that the attempt works."""
    with transaction.atomic():
        Attempt.objects.filter(pk=attempt.pk).update(started=Coalesce("started", Now()))
        Run.objects.filter(pk=attempt.run_id, attempt=attempt.number).move("begin")


def resumed(run: int, number: int, step: int | None, *, in_warm_start: bool = False) -> None:
    """Settle which steps are current: the attempt went on from this one, what earlier ones did past it is repeated."""
    trained = None if in_warm_start else step
    kept = trained if trained is not None else NOTHING + (step or 0)
    attempts = Attempt.objects.filter(run=run)
    attempts.filter(number=number).update(resumed_from=trained)
    until = Least(Coalesce("superseded_after", Value(kept)), Value(kept), output_field=IntegerField())
    attempts.filter(number__lt=number).update(superseded_after=until)
    stale = Checkpoint.objects.filter(run=run, attempt__lt=number, folder__contains=STEPS, step__gt=max(kept, -1))
    stale.filter(pruned=None).update(pruned=Now())

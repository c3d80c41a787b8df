"""Write the run folder, and settle from which checkpoint an attempt goes on."""

import json

from django.db import transaction
from django.db.models import IntegerField, Value
from django.db.models.functions import Coalesce, Least, Now

from vantage.datasets.models import DatasetVersion
from vantage.runs.folder import RunFolder, write_whole
from vantage.runs.models import Attempt, Run

NOTHING = -1  # superseded_after of an attempt that was repeated whole


def write_folder(run: Run, folder: RunFolder) -> None:
    """Write data and spec once; the spec comes last, so a folder that has it is whole."""
    if folder.spec.exists():
        return
    folder.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, version in run.datasets.items():
        folder.data(name).parent.mkdir(exist_ok=True)
        DatasetVersion.objects.get(pk=version).write_jsonl(folder.data(name))
    write_whole(folder.spec, json.dumps(run.spec))


def begin(attempt: Attempt, step: int | None) -> None:
    """Say that the attempt works, from the checkpoint at this step (None: from nothing); what went past it is over."""
    kept = NOTHING if step is None else step
    with transaction.atomic():
        Attempt.objects.filter(pk=attempt.pk).update(resumed_from=step, started=Coalesce("started", Now()))
        until = Least(Coalesce("superseded_after", Value(kept)), Value(kept), output_field=IntegerField())
        earlier = Attempt.objects.filter(run=attempt.run_id, number__lt=attempt.number)
        earlier.update(superseded_after=until)
        Run.objects.filter(pk=attempt.run_id, attempt=attempt.number).move("begin")

"""The completions of a run's current steps as a file, each with the answer that it was compared with."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from django.db.models import Q, QuerySet
from vantage_trainer.data_files import file_of, id_in, training_files
from vantage_trainer.spec import RunSpec

from vantage.datasets.models import Row
from vantage.numbers import whole
from vantage.runs.models import Attempt, Run, Sample

CHUNK = 2000
FIELDS = ("id", "step", "group", "text", "num_tokens", "reward", "parts", "correct", "finish")


def current_samples(run: Run) -> QuerySet[Sample]:
    """Completions of every step that counts, in the order of the run; what was repeated after a resume is left out."""
    ends = dict(Attempt.objects.filter(run=run).values_list("number", "superseded_after"))
    current = Q(attempt__in=[number for number, end in ends.items() if end is None])
    for number, end in ends.items():
        if end is not None:
            current |= Q(attempt=number, step__lte=end)
    return Sample.objects.filter(current, run=run).order_by("step", "group", "index", "seq")


def write_samples(run: Run, path: Path) -> int:
    """Write them one a line, in ASCII so that any text survives; returns how many."""
    path.parent.mkdir(exist_ok=True)
    answers, num = answers_of(run), 0
    with path.open("w", encoding="ascii") as file:
        for line in _lines(run, answers):
            num += file.write(line) > 0
    return num


def answers_of(run: Run, prompt_ids: Iterable[str] | None = None) -> dict[str, str]:
    """The answers of the training datasets by problem, of all or of some: an id tells the dataset and the row."""
    wanted = None if prompt_ids is None else [file_of(one) for one in prompt_ids]
    found: dict[str, str] = {}
    for file in training_files(RunSpec.model_validate(run.spec)):
        rows = Row.objects.filter(version=run.datasets.get(file))
        if wanted is not None:
            numbers = [whole(row, 2**31 - 1) for name, row in wanted if name == file]
            rows = rows.filter(number__in=[number for number in numbers if number is not None])
        told = rows.values_list("number", "answer").iterator(chunk_size=CHUNK)
        found |= {id_in(file, str(number)): answer for number, answer in told}
    return found


def _lines(run: Run, answers: dict[str, str]) -> Iterator[str]:
    for sample in current_samples(run).values("prompt_id", *FIELDS).iterator(chunk_size=CHUNK):
        answer = answers.get(sample.pop("prompt_id"))
        yield json.dumps({**sample, "answer": answer}) + "\n"

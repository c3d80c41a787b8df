"""What the site knows of one kind of job: its words, what it refuses, the data it needs, how its result reads."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from vantage_trainer.jobspec import JobSpec
from vantage_trainer.refusal import Refusal

from vantage.runs.figures import Figure
from vantage.runs.models import Event, Run
from vantage.teams.models import Team

Context = dict[str, object]


def _nothing(team: Team, spec: JobSpec, parent: Run | None) -> Iterator[Refusal]:
    yield from ()


def _no_files(team: Team, spec: JobSpec, parent: Run | None) -> dict[str, int]:
    return {}


def _no_context(run: Run) -> Context:
    return {"results": results_of(run)}


def _no_figures(run: Run) -> dict[str, Figure]:
    return {}


@dataclass(frozen=True)
class JobKind:
    """One kind of job; `result` is the context of its template runs/job_<kind>.html.

    `charts` in that context are (slug, title) of what `figures` draws; `answers` says that there are samples to read.
    """

    title: str
    refusals: Callable[[Team, JobSpec, Run | None], Iterator[Refusal]] = _nothing
    files: Callable[[Team, JobSpec, Run | None], dict[str, int]] = _no_files  # file in data/ -> pk of the version
    result: Callable[[Run], Context] = _no_context
    needs_folder: bool = True  # of its parent: it goes to the node that holds it
    figures: Callable[[Run], dict[str, Figure]] = _no_figures


def results_of(run: Run) -> list[dict]:
    """What the newest attempt has told as its result, in order."""
    events = Event.objects.filter(run=run, attempt=run.attempt, kind="result").order_by("seq")
    return list(events.values_list("data", flat=True))

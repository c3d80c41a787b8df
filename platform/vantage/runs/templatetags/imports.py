"""Imports under way, for the page of datasets, which knows nothing of runs."""

from dataclasses import dataclass

from django import template

from vantage.runs.import_queue import imports_of
from vantage.runs.job_progress import phase_of_job
from vantage.runs.models import Run
from vantage.runs.states import Status
from vantage.teams.access import current_team, reader

register = template.Library()


@dataclass(frozen=True)
class UnderWay:
    """An import and how far it is; `share` is between 0 and 1, where the number of records is known."""

    run: Run
    says: str
    share: float | None = None


@register.simple_tag(takes_context=True)
def imports_under_way(context: template.Context) -> list[UnderWay]:
    request = context["request"]
    return [under_way(run) for run in imports_of(current_team(request), reader(request))]


def under_way(run: Run) -> UnderWay:
    if run.status == Status.QUEUED:
        return UnderWay(run, "Waits for a node")
    phase = phase_of_job(run)
    if phase is None:
        return UnderWay(run, "")
    says = f"{phase.title}: {phase.done:,} records" if phase.done else phase.title
    return UnderWay(run, says, min(1.0, (phase.done or 0) / phase.total) if phase.total else None)

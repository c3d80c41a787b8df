"""Imports under way, for the page of datasets, which knows nothing of runs."""

from dataclasses import dataclass

from django import template

from vantage.runs.import_queue import imports_of
from vantage.runs.models import Event, Run
from vantage.runs.states import ACTIVE, Status
from vantage.teams.access import current_team, reader

register = template.Library()
PHASES = {"loading": "Looking for the file", "checking": "Checking", "storing": "Storing", "finished": "Finishing"}


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
    if run.status not in ACTIVE:
        return UnderWay(run, "")
    newest = Event.objects.filter(run=run, attempt=run.attempt, kind="phase").order_by("-seq").first()
    data = newest.data if newest and isinstance(newest.data, dict) else {}
    told = data.get("progress")
    done, total = (told.get("done"), told.get("total")) if isinstance(told, dict) else (None, None)
    phase = PHASES.get(str(data.get("name")), "Starting")
    says = f"{phase}: {done:,} records" if isinstance(done, int) and done else phase
    if isinstance(done, int) and isinstance(total, int) and total > 0:
        return UnderWay(run, says, min(1.0, done / total))
    return UnderWay(run, says)

"""How far a job is, from what its newest attempt told."""

from vantage.runs.models import Event, Run
from vantage.runs.overview import PHASES, Phase
from vantage.runs.states import ACTIVE
from vantage.text import showable

TITLES = PHASES | {"writing": "Writing files", "verifying": "Verifying what was written"}


def phase_of_job(run: Run) -> Phase | None:
    """What the job does now; None while no node works on it or it has told nothing yet."""
    if run.status not in ACTIVE:
        return None
    events = Event.objects.filter(run=run, attempt=run.attempt, kind="phase")
    data = events.order_by("-seq").values_list("data", flat=True).first()
    if not isinstance(data, dict):
        return None
    name, progress = showable(str(data.get("name", ""))), data.get("progress")
    done, total = (progress.get("done"), progress.get("total")) if isinstance(progress, dict) else (None, None)
    return Phase(TITLES.get(name, name.replace("_", " ").capitalize()), done, total)

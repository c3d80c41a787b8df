"""What stands above a run's charts: how far it is, what it does now, what it waits for, and how it does."""

from dataclasses import dataclass

from vantage.runs.latest import Point, newest
from vantage.runs.models import Attempt, Event, Run
from vantage.runs.states import ACTIVE
from vantage.runs.table import Line, first_set, lines

PACE_STEPS = 20  # the remaining time is guessed from the pace of this many steps
PHASES = {
    "loading": "Loading the model",
    "warm_start": "Warm start",
    "generating": "Generating",
    "scoring": "Scoring",
    "updating": "Updating",
    "syncing": "Moving weights",
    "evaluating": "Evaluating",
    "checkpointing": "Writing a checkpoint",
    "finished": "Finishing",
}


@dataclass(frozen=True)
class Phase:
    """What the trainer does now; done and total where it counts."""

    title: str
    done: int | None
    total: int | None
    since: float


@dataclass(frozen=True)
class Overview:
    """The facts of a run's header."""

    line: Line
    attempt: Attempt | None
    phase: Phase | None
    waiting: dict | None
    warnings: list[Event]
    remaining: float | None
    best: Point | None
    held_out: str

    @property
    def run(self) -> Run:
        return self.line.run


def overview(run: Run) -> Overview:
    attempt = run.attempts.filter(number=run.attempt).select_related("node").first()
    line = lines([run])[0]
    is_active = run.status in ACTIVE
    held_out = first_set(run.spec)
    return Overview(
        line,
        attempt,
        phase_of(run) if is_active else None,
        waiting_of(run) if is_active else None,
        list(Event.objects.filter(run=run, kind="warning").order_by("-attempt", "-seq")[:3]),
        remaining(run, line) if is_active else None,
        best_of(run, held_out),
        held_out,
    )


def phase_of(run: Run) -> Phase | None:
    event = Event.objects.filter(run=run, attempt=run.attempt, kind="phase").order_by("-seq").first()
    if event is None:
        return None
    progress = event.data.get("progress") or {}
    name = str(event.data.get("name", ""))
    return Phase(PHASES.get(name, name), progress.get("done"), progress.get("total"), event.time)


def waiting_of(run: Run) -> dict | None:
    """What the trainer waits for, unless it has begun something since."""
    newest = Event.objects.filter(run=run, attempt=run.attempt, kind__in=["waiting", "phase"]).order_by("-seq").first()
    return newest.data if newest is not None and newest.kind == "waiting" else None


def remaining(run: Run, line: Line) -> float | None:
    """Guess the seconds left from the pace of the newest steps."""
    points = newest([(run.pk, "time/step")], PACE_STEPS).get((run.pk, "time/step"), [])
    if len(points) < 2 or points[-1].step == points[0].step:
        return None
    pace = (points[-1].time - points[0].time) / (points[-1].step - points[0].step)
    return max(0.0, pace * (line.steps - points[-1].step))


def best_of(run: Run, held_out: str) -> Point | None:
    """The highest held-out pass@1; what is not finite is no candidate."""
    key = f"eval/{held_out}/pass@1"
    points = newest([(run.pk, key)], 10_000).get((run.pk, key), []) if held_out else []
    return max((one for one in points if one.is_finite), key=lambda one: one.value, default=None)

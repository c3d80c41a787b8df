"""What stands above a run's charts: how far it is, what it does now, what it waits for, and how it does."""

from dataclasses import dataclass

from vantage.runs.latest import Point, newest
from vantage.runs.models import Attempt, Event, Run
from vantage.runs.states import ACTIVE
from vantage.runs.table import WARM_LOSS, Line, first_set, lines
from vantage.text import showable

PACE_STEPS = 20  # the remaining time is guessed from the pace of this many steps
PHASES = {
    "loading": "Loading the model",
    "warm_start": "Warm start",
    "waiting": "Waiting for the generator",
    "generating": "Generating",
    "scoring": "Scoring",
    "criticising": "Asking the critic",
    "updating": "Updating",
    "syncing": "Moving weights",
    "reporting": "Writing the journal",
    "evaluating": "Evaluating",
    "checkpointing": "Writing a checkpoint",
    "finished": "Finishing",
}


ENDS = ("checkpoint", "evaluation", "sync")  # events that tell that what went before is done
BEGINS = ("phase", "stage", "waiting")


@dataclass(frozen=True)
class Phase:
    """What the trainer does or waits for now; done and total where it counts."""

    title: str
    done: int | None = None
    total: int | None = None
    since: float | None = None  # of a wait


@dataclass(frozen=True)
class Overview:
    """The facts of a run's header."""

    line: Line
    attempt: Attempt | None
    phase: Phase | None
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
        phase_of(run, line) if is_active else None,
        list(Event.objects.filter(run=run, kind="warning").order_by("-attempt", "-seq")[:3]),
        remaining(run, line) if is_active else None,
        best_of(run, held_out),
        held_out,
    )


def phase_of(run: Run, line: Line) -> Phase | None:
    """What the newest event began; where another has ended it since, what the run is at as a whole."""
    events = Event.objects.filter(run=run, attempt=run.attempt)
    event = events.filter(kind__in=(*BEGINS, *ENDS)).order_by("-seq").first()
    if event is None:
        return None
    data = event.data if isinstance(event.data, dict) else {}
    name = showable(str(data.get("name", "")))
    if event.kind == "waiting":
        return Phase(f"Waits for {showable(str(data.get('what', '')))}", since=data.get("since"))
    reported = line.reward is not None and line.reward.time > event.time
    if reported or event.kind in (*ENDS, "stage") or name == "warm_start":
        return _stage_of(line)
    progress = data.get("progress")
    done, total = (progress.get("done"), progress.get("total")) if isinstance(progress, dict) else (None, None)
    return Phase(PHASES.get(name, name), done, total)


def _stage_of(line: Line) -> Phase:
    if line.warm is not None:
        return Phase(PHASES["warm_start"], line.warm.step, line.warm.steps)
    return Phase(f"Step {min(line.step + 1, line.steps)}")


def remaining(run: Run, line: Line) -> float | None:
    """Guess the seconds left from the pace of the newest steps: of the warm start, while that lasts."""
    key, steps = (WARM_LOSS, line.warm.steps) if line.warm else ("time/step", line.steps)
    points = newest([(run.pk, key)], PACE_STEPS).get((run.pk, key), [])
    if len(points) < 2 or points[-1].step == points[0].step:
        return None
    pace = (points[-1].time - points[0].time) / (points[-1].step - points[0].step)
    return max(0.0, pace * (steps - points[-1].step))


def best_of(run: Run, held_out: str) -> Point | None:
    """The highest held-out pass@1; what is not finite is no candidate."""
    key = f"eval/{held_out}/pass@1"
    points = newest([(run.pk, key)], 10_000).get((run.pk, key), []) if held_out else []
    return max((one for one in points if one.is_finite), key=lambda one: one.value, default=None)

"""Which steps of which attempt count: what was repeated after a resume is kept, but is not current."""

from dataclasses import dataclass

from django.db.models import Min

from vantage.runs.models import Attempt, Event, Run
from vantage.runs.prepare import NOTHING

NO_END = 2**31 - 1
SANE = (0.0, 1e11)  # seconds since 1970 that a clock may show
WARM_START = "warm_start/"  # rows under these keys count their own steps


@dataclass(frozen=True)
class Stretch:
    """Steps low..high (both included) of an attempt are current; elapsed time is `time - shift`, gaps left out."""

    attempt: int
    low: int
    high: int
    shift: float


def stretches(runs: list[Run], key: str = "", *, timed: bool = False) -> dict[int, list[Stretch]]:
    """Return each run's current stretches, oldest attempt first; at a step that two share, the later one counts."""
    found: dict[int, list[Stretch]] = {run.pk: [] for run in runs}
    attempts = list(Attempt.objects.filter(run__in=runs).order_by("run", "number"))
    shifts = _shifts(attempts) if timed else {}
    bounds = _warm_start_bounds if key.startswith(WARM_START) else _bounds
    for attempt in attempts:
        low, high = bounds(attempt)
        if low <= high:
            found[attempt.run_id].append(Stretch(attempt.number, low, high, shifts.get(attempt.pk, 0.0)))
    return found


def superseded(run: Run, key: str = "", *, timed: bool = False) -> list[Stretch]:
    """Return what attempts did past the checkpoint that a later one went on from, which joins on at its lower end."""
    attempts = list(Attempt.objects.filter(run=run).order_by("number"))
    shifts = _shifts(attempts) if timed else {}
    in_warm_start = key.startswith(WARM_START)
    bounds = _warm_start_bounds if in_warm_start else _bounds
    return [
        Stretch(attempt.number, max(low, high, 0), NO_END, shifts.get(attempt.pk, 0.0))
        for attempt in attempts
        for low, high in [bounds(attempt)]
        if high < (NO_END if in_warm_start else attempt.step)
    ]


def _bounds(attempt: Attempt) -> tuple[int, int]:
    return attempt.resumed_from or 0, NO_END if attempt.superseded_after is None else attempt.superseded_after


def _warm_start_bounds(attempt: Attempt) -> tuple[int, int]:
    kept = attempt.superseded_after
    return 0, NO_END if kept is None or kept >= 0 else kept - NOTHING


def _shifts(attempts: list[Attempt]) -> dict[int, float]:
    """Return per attempt what to subtract from the clock: its own start, less the time that earlier ones worked."""
    events = Event.objects.filter(run__in={attempt.run_id for attempt in attempts}, time__range=SANE)
    firsts = events.values("run", "attempt").annotate(first=Min("time"))
    begun = {(one["run"], one["attempt"]): one["first"] for one in firsts}
    kept = {(one.run_id, one.step): one.time for one in events.filter(kind="checkpoint").order_by("seq")}
    shifts, worked = {}, dict.fromkeys((attempt.run_id for attempt in attempts), 0.0)
    for attempt in attempts:
        start = begun.get((attempt.run_id, attempt.number), (attempt.started or attempt.created).timestamp())
        shifts[attempt.pk] = start - worked[attempt.run_id]
        if attempt.superseded_after is not None:
            worked[attempt.run_id] += max(0.0, kept.get((attempt.run_id, attempt.superseded_after), start) - start)
    return shifts

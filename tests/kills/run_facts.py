"""What must be true of a run after every kill, asked from Postgres without the site's own queries for it."""

from dataclasses import dataclass
from pathlib import Path

from django.db import connection
from vantage.runs.models import Attempt, Event, Run
from vantage.runs.prepare import NOTHING
from vantage.runs.series import series
from vantage.runs.states import ACTIVE, Outcome

STEPS, WARM = "reward/mean", "warm_start/loss"
SLACK_SECONDS = 5.0  # a warm start's checkpoints come by the clock: one more step and its writing
CURRENT = """
    SELECT m.step, count(*) FROM runs_metricrow m
    JOIN runs_metrickey k ON k.id = m.key_id AND k.name = %s
    JOIN runs_attempt a ON a.run_id = m.run_id AND a.number = m.attempt
    WHERE m.run_id = %s AND m.step > coalesce(a.resumed_from, 0)
      AND m.step <= coalesce(a.superseded_after, 2147483647)
    GROUP BY m.step ORDER BY m.step
"""
NEWEST = """
    SELECT coalesce(max(m.time), 0) FROM runs_metricrow m JOIN runs_metrickey k ON k.id = m.key_id
    WHERE m.run_id = %s AND m.attempt >= %s AND k.name = ANY(%s)
"""
REACHED = """
    SELECT m.step, m.time FROM runs_metricrow m JOIN runs_metrickey k ON k.id = m.key_id AND k.name = %s
    WHERE m.run_id = %s AND m.attempt = %s ORDER BY m.step
"""


@dataclass(frozen=True)
class Repeat:
    """What an attempt did past the checkpoint that the next one went on from."""

    steps: int = 0
    seconds: float = 0.0
    of_warm_start: bool = False

    def __str__(self) -> str:
        return f"{self.steps}w" if self.of_warm_start and self.steps else str(self.steps)


def rows(query: str, *values: object) -> list[tuple]:
    with connection.cursor() as cursor:
        cursor.execute(query, list(values))
        return cursor.fetchall()


def newest_time(run: Run, attempt: int) -> float:
    """When the newest step that Postgres holds of this attempt or a later one was reported; 0: there is none."""
    return float(rows(NEWEST, run.pk, attempt, [STEPS, WARM])[0][0])


def faults(run: Run) -> list[str]:
    """Say in sentences what is wrong with a run; nothing: every step is current once, every attempt accounted for."""
    return [*_steps_not_once(run), *_attempts_unsettled(run)]


def _steps_not_once(run: Run) -> list[str]:
    found = rows(CURRENT, STEPS, run.pk)
    steps = [step for step, _ in found]
    wrong = [f"Step {step} is current {count} times." for step, count in found if count != 1]
    if missing := sorted(set(range(1, max(steps, default=0) + 1)) - set(steps)):
        wrong.append(f"Steps {missing} are current in no attempt.")
    for key in (STEPS, WARM):
        shown = series(run, key, points=100_000)
        if shown.x != list(range(1, len(shown.x) + 1)) or any(count != 1 for count in shown.count):
            wrong.append(f"The chart of {key} does not show every step once.")
    return wrong


def _attempts_unsettled(run: Run) -> list[str]:
    wrong = []
    for attempt in Attempt.objects.filter(run=run).order_by("number"):
        is_newest = attempt.number == run.attempt
        if attempt.outcome == Outcome.LIVE and not (is_newest and run.status in ACTIVE):
            wrong.append(f"Attempt {attempt.number} still counts as alive.")
        if attempt.outcome != Outcome.LIVE and not attempt.sentence:
            wrong.append(f"Attempt {attempt.number} ended without a sentence.")
        if not is_newest and attempt.superseded_after is None:
            wrong.append(f"Attempt {attempt.number} has no end though a later one went on.")
    return wrong


def repeated(run: Run, number: int) -> Repeat:
    """What of attempt `number` was repeated."""
    kept = Attempt.objects.get(run=run, number=number).superseded_after
    if kept is None:
        return Repeat()
    key, from_step = (STEPS, kept) if kept >= 0 else (WARM, kept - NOTHING)
    past = [(step, time) for step, time in rows(REACHED, key, run.pk, number) if step > from_step]
    seconds = past[-1][1] - past[0][1] if past else 0.0
    return Repeat(len(past), seconds, of_warm_start=kept < 0)


def resumption(run: Run) -> str:
    """Say where the newest attempt went on."""
    told = Event.objects.filter(run=run, attempt=run.attempt, kind="resumed").values_list("data", flat=True).first()
    where = Path(told["checkpoint"]).name if told and told["checkpoint"] else "the start"
    return f"attempt {run.attempt} from {where}"


def too_much(found: Repeat, every_steps: int, every_seconds: float) -> list[str]:
    """Hold repeated work against the interval between checkpoints."""
    if found.of_warm_start and found.seconds > every_seconds + SLACK_SECONDS:
        return [f"{found.seconds:.0f} s of the warm start were repeated, checkpoints come every {every_seconds:.0f} s."]
    if not found.of_warm_start and found.steps > every_steps:
        return [f"{found.steps} steps were repeated, checkpoints come every {every_steps}."]
    return []


def processes_of(folder: Path) -> list[int]:
    from vantage.processes import carrying
    from vantage.runs.trainer_process import MARK

    return [process.pid for process in carrying(MARK, str(folder))]

"""Read from Postgres what an attempt computed again; bounded by what was superseded, however long the run is."""

from dataclasses import dataclass

from django.db import connection
from django.db.models import Max
from vantage_trainer.metrics import is_clocked

from vantage.runs.current import NO_END, WARM_START
from vantage.runs.models import Attempt, Event, Run
from vantage.runs.reading import reported_keys
from vantage.runs.repeats import MOST_SHOWN, Answers, Difference, Place, Repeat, Stage, compare
from vantage.runs.states import Outcome
from vantage.text import restored, showable

VALUES = """
    SELECT key.name, row.step, row.attempt, row.value
    FROM unnest(%(ids)s::bigint[], %(names)s::text[]) AS key(id, name) CROSS JOIN LATERAL (
        SELECT step, attempt, seq, value FROM runs_metricrow WHERE run_id = %(run)s AND key_id = key.id
        AND step BETWEEN %(low)s AND %(high)s AND attempt <= %(attempt)s) AS row
    ORDER BY row.attempt, row.seq"""
PARTS = ("prompt_id", "prompt", "text", "num_tokens", "reward", "parts::text", "correct::text", "advantage", "finish")
BOTH = "min({part}) FILTER (WHERE NOT again) {differs} min({part}) FILTER (WHERE again)"
WORDS = {part: part.partition("::")[0] for part in PARTS} | {"nullif(digest, '')": "tokens"}  # with the seed
DIFFERS = [
    # Older trainers told no digest: <> is not true of what is not there.
    f"CASE WHEN {BOTH.format(part=part, differs='<>' if word == 'tokens' else 'IS DISTINCT FROM')} THEN '{word}' END"
    for part, word in WORDS.items()
]
# Of each step the answers of the newest earlier attempt that has it, beside those of this one. They are brought
# together by grouping: a join of the two would be planned badly while the tables' statistics are old.
PAIRS = f"""
    WITH newest AS MATERIALIZED (
        SELECT step, max(attempt) AS earlier FROM runs_sample
        WHERE run_id = %(run)s AND step BETWEEN %(low)s AND %(high)s AND attempt < %(attempt)s GROUP BY step),
    pair AS MATERIALIZED (
        SELECT step, earlier, "group", "index", bool_or(NOT again) AS first, bool_or(again) AS second,
               left(min(text) FILTER (WHERE NOT again), 200) AS one, left(min(text) FILTER (WHERE again), 200) AS other,
               array_remove(ARRAY[{", ".join(DIFFERS)}], NULL) AS parts
        FROM (SELECT *, attempt = %(attempt)s AS again FROM runs_sample JOIN newest USING (step)
              WHERE run_id = %(run)s AND attempt IN (earlier, %(attempt)s)) AS told
        GROUP BY step, earlier, "group", "index")"""
COUNTS = f"""{PAIRS}
    SELECT step, earlier, count(*) FILTER (WHERE first), count(*) FILTER (WHERE second),
           count(*) FILTER (WHERE first AND second),
           count(*) FILTER (WHERE first AND second AND cardinality(parts) > 0)
    FROM pair GROUP BY step, earlier ORDER BY step"""
EXAMPLES = f"""{PAIRS}
    SELECT step, "group", "index", parts, one, other FROM pair WHERE first AND second AND cardinality(parts) > 0
    ORDER BY step, "group", "index" LIMIT {MOST_SHOWN}"""


@dataclass(frozen=True)
class Begun:
    """Where an attempt went on: after this step of this stage; None: from the very beginning."""

    attempt: Attempt
    stage: Stage
    step: int | None


def begun(run: Run) -> list[Begun]:
    """List the attempts that went on from something, oldest first."""
    attempts = {attempt.number: attempt for attempt in run.attempts.filter(number__gt=1)}
    told = Event.objects.filter(run=run, kind="resumed", attempt__in=attempts).order_by("attempt", "seq")
    found = {event.attempt: (event.data.get("stage"), event.data.get("from_step")) for event in told}
    return [
        Begun(attempts[number], "warm_start" if stage == "warm_start" else "rl", step if type(step) is int else None)
        for number, (stage, step) in found.items()
    ]


def repeat_of(one: Begun) -> Repeat | None:
    """Compare what the attempt computed again, once, and keep it in its row; None: more of it may come."""
    attempt = one.attempt
    if attempt.repeat is not None:
        return Repeat.model_validate(attempt.repeat)
    high = _reached(attempt)
    if attempt.outcome == Outcome.LIVE and attempt.step <= high:
        return None
    found = _compared(one, high)
    Attempt.objects.filter(pk=attempt.pk, repeat__isnull=True).update(repeat=found.model_dump())
    return found


def _reached(attempt: Attempt) -> int:
    """The furthest step that any earlier attempt has told of."""
    earlier = Attempt.objects.filter(run=attempt.run_id, number__lt=attempt.number)
    return earlier.aggregate(most=Max("step"))["most"] or 0


def _compared(one: Begun, high: int) -> Repeat:
    ids = {name: pk for name, pk in reported_keys(one.attempt.run).items() if not is_clocked(name)}
    in_warm_start = one.stage == "warm_start" or one.step is None
    since = -1 if in_warm_start or one.step is None else one.step
    rows = _values(one.attempt, "rl", {k: v for k, v in ids.items() if not k.startswith(WARM_START)}, since, high)
    if in_warm_start:
        warm = {name: pk for name, pk in ids.items() if name.startswith(WARM_START)}
        rows += _values(one.attempt, "warm_start", warm, -1 if one.step is None else one.step, NO_END)
    answers = _fetch(COUNTS, one.attempt, since + 1, high)
    before = {place: value for place, attempt, value in rows if attempt < one.attempt.number}
    after = {place: value for place, attempt, value in rows if attempt == one.attempt.number}
    involved = {attempt for place, attempt, _ in rows if place in after and place in before}
    return compare(
        involved | {step_attempt for _, step_attempt, *_, common, _ in answers if common},
        before,
        after,
        [Answers(step, *numbers) for step, _, *numbers in answers],
        _examples(one.attempt, since + 1, high) if any(differing for *_, differing in answers) else [],
    )


def _values(
    attempt: Attempt, stage: Stage, ids: dict[str, int], since: int, high: int
) -> list[tuple[Place, int, float]]:
    """Read the rows from a step on, oldest attempt first; of the step itself only what was told again."""
    keys = {"ids": list(ids.values()), "names": list(ids)}
    found = [((stage, step, name), by, value) for name, step, by, value in _fetch(VALUES, attempt, since, high, **keys)]
    again = {place for place, by, _ in found if by == attempt.number} & {
        place for place, by, _ in found if by < attempt.number
    }
    return [row for row in found if row[0][1] > since or row[0] in again]


def _examples(attempt: Attempt, low: int, high: int) -> list[Difference]:
    return [
        Difference(
            stage="rl",
            step=step,
            what=f"{', '.join(parts)} of answer {index} in group {group}",
            before=showable(restored(one)),
            after=showable(restored(other)),
        )
        for step, group, index, parts, one, other in _fetch(EXAMPLES, attempt, low, high)
    ]


def _fetch(sql: str, attempt: Attempt, low: int, high: int, **more: object) -> list[tuple]:
    given = {"run": attempt.run_id, "attempt": attempt.number, "low": low, "high": high}
    with connection.cursor() as cursor:
        cursor.execute(sql, given | more)
        return cursor.fetchall()

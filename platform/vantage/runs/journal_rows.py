"""Journal lines as rows of Postgres."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import psycopg
from django.core.exceptions import ValidationError
from django.db import DataError, IntegrityError, connection, transaction

from vantage.runs.models import Checkpoint, Event, MetricKey, Run, Sample
from vantage.runs.prepare import resumed
from vantage.runs.tail import Line, number
from vantage.stored import Json
from vantage.text import storable

MOST = 2**31 - 1
MOST_BYTES = 2**63 - 1
YEAR_5138 = 1e11  # seconds since 1970; a time past it, or before 1970, is none
REFUSED = (DataError, IntegrityError, psycopg.DataError, psycopg.IntegrityError, ValidationError)
UNSTORABLE = (*REFUSED, ValueError, TypeError, KeyError, AttributeError, RecursionError)
COLUMNS = "run_id, attempt, key_id, seq, step, time, value"
TEMPORARY = "CREATE TEMPORARY TABLE IF NOT EXISTS incoming (LIKE runs_metricrow) ON COMMIT DELETE ROWS"
INSERT = f"INSERT INTO runs_metricrow ({COLUMNS}) SELECT {COLUMNS} FROM incoming ON CONFLICT DO NOTHING"


@dataclass(frozen=True)
class Target:
    """Whose journal it is."""

    run: int
    team: int
    attempt: int
    pk: int  # of the attempt


def _store_metrics(target: Target, lines: list[Line]) -> None:
    if not lines:
        return
    keys = key_ids({name for line in lines for name in _values(line)})
    head = f"{target.run}\t{target.attempt}"
    with connection.cursor() as cursor:
        cursor.execute(TEMPORARY)
        with cursor.copy(f"COPY incoming ({COLUMNS}) FROM STDIN") as copy:
            for line in lines:
                place = f"{count(line['seq'])}\t{count(line.get('step'))}\t{moment(line)!r}"
                rows = (f"{head}\t{keys[name]}\t{place}\t{number(value)!r}\n" for name, value in _values(line).items())
                copy.write("".join(rows))
        cursor.execute(INSERT)


def _store_samples(target: Target, lines: list[Line]) -> None:
    Sample.objects.bulk_create([_sample(target, line) for line in lines], batch_size=500, ignore_conflicts=True)


def _store_events(target: Target, lines: list[Line]) -> None:
    Event.objects.bulk_create([_event(target, line) for line in lines], batch_size=500, ignore_conflicts=True)
    kept = [_checkpoint(target, line) for line in lines if line.get("kind") == "checkpoint"]
    if kept:
        Checkpoint.objects.bulk_create(kept, ignore_conflicts=True)
        Run.objects.filter(pk=target.run).update(num_lost=0)  # it moved on: losses before this one are forgiven
    for line in lines:
        if line.get("kind") == "resumed" and isinstance(data := line.get("data"), dict):
            step = None if data.get("from_step") is None else count(data["from_step"])
            resumed(target.run, target.attempt, step, in_warm_start=data.get("stage") == "warm_start")


STORE: dict[str, Callable[[Target, list[Line]], None]] = {
    "metrics": _store_metrics,
    "samples": _store_samples,
    "events": _store_events,
}


def store(target: Target, name: str, lines: list[Line]) -> None:
    """Store the lines of a journal; those that Postgres or we cannot take are set aside with one warning."""
    refused = _refused(STORE[name], target, lines)
    if refused:
        line, fault = refused[0]
        first = f"the first is number {line['seq']} of {name}.jsonl ({type(fault).__name__})"
        sentence = f"Some lines of the journal could not be stored and were left out; {first}."
        told = Event(run_id=target.run, attempt=target.attempt, kind="warning", data={"sentence": sentence})
        told.seq, told.step, told.time = MOST, count(line.get("step")), time.time()
        Event.objects.bulk_create([told], ignore_conflicts=True)  # the one with this number: an attempt has one


def _refused(
    stored: Callable[[Target, list[Line]], None], target: Target, lines: list[Line]
) -> list[tuple[Line, Exception]]:
    """Store all but the lines that cannot be, found by halving."""
    try:
        with transaction.atomic():
            stored(target, lines)
        return []
    except UNSTORABLE as fault:  # lines come from a process that runs other people's code
        if len(lines) == 1:
            return [(lines[0], fault)]
    middle = len(lines) // 2
    return _refused(stored, target, lines[:middle]) + _refused(stored, target, lines[middle:])


def key_ids(names: set[str]) -> dict[str, int]:
    """Return the id of each metric name, making what is new."""
    short = {name: storable(name)[:200] for name in names}
    known = dict(MetricKey.objects.filter(name__in=list(short.values())).values_list("name", "pk"))
    new = [MetricKey(name=name) for name in sorted(set(short.values()) - known.keys())]
    # An update of what another supervisor has made meanwhile: only so does the statement itself return every id.
    made = MetricKey.objects.bulk_create(new, update_conflicts=True, unique_fields=["name"], update_fields=["name"])
    known |= {key.name: key.pk for key in made}
    return {name: known[stored] for name, stored in short.items()}


def training_step(line: Line) -> int:
    warm = any(name.startswith("warm_start/") for name in _values(line))
    return 0 if warm else count(line.get("step"))


def _values(line: Line) -> dict[str, Json]:
    values = line.get("values")
    return values if isinstance(values, dict) else {}


def _sample(target: Target, line: Line) -> Sample:
    return Sample(
        run_id=target.run,
        attempt=target.attempt,
        seq=count(line["seq"]),
        step=count(line.get("step")),
        time=moment(line),
        prompt_id=str(line.get("prompt_id", "")),
        group=whole(line.get("group")),
        index=whole(line.get("index")),
        prompt=str(line.get("prompt", "")),
        text=str(line.get("text", "")),
        num_tokens=whole(line.get("num_tokens")),
        reward=_optional(line.get("reward")),
        parts=_mapping(line.get("parts")),
        correct=found if isinstance(found := line.get("correct"), bool) else None,
        advantage=_optional(line.get("advantage")),
        finish=_word(line.get("finish", ""), 10),
        version=whole(line.get("version")),
        digest=_word(line.get("digest", ""), 32),
        tokens=found if isinstance(found := line.get("tokens"), dict) else None,
    )


def _event(target: Target, line: Line) -> Event:
    return Event(
        run_id=target.run,
        attempt=target.attempt,
        seq=count(line["seq"]),
        step=count(line.get("step")),
        time=moment(line),
        kind=_word(line.get("kind", ""), 20),
        data=_mapping(line.get("data")),
    )


def _checkpoint(target: Target, line: Line) -> Checkpoint:
    data = line.get("data")
    told = data if isinstance(data, dict) else {}
    step = count(told.get("step", line.get("step")))
    folder = _word(told.get("folder", f"checkpoints/step-{step:06d}"), 200)
    size = count(told.get("bytes"), MOST_BYTES)
    return Checkpoint(run_id=target.run, attempt=target.attempt, step=step, folder=folder, bytes=size)


def _word(value: Json, most: int) -> str:
    return storable(str(value))[:most]


def _mapping(value: Json) -> dict[str, Json]:
    """Return a mapping, whatever was told: pages look things up in it."""
    return value if isinstance(value, dict) else {} if value is None else {"value": value}


def moment(line: Line) -> float:
    """Return a line's time; where it tells none that can be, now."""
    told = number(line.get("time"))
    return told if 0 <= told <= YEAR_5138 else time.time()


def _optional(value: Json) -> float | None:
    return None if value is None else number(value)


def whole(value: Json, most: int = MOST) -> int:
    """Read a whole number; what no integer column takes is cut to its range."""
    found = value if isinstance(value, int) else number(value)
    return int(min(max(found, -most), most)) if isinstance(found, int) or math.isfinite(found) else 0


def count(value: Json, most: int = MOST) -> int:
    """Read a count or a step, which is never negative."""
    return max(0, whole(value, most))

"""Journal lines as rows of Postgres."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from django.db import connection

from vantage.runs.models import Checkpoint, Event, MetricKey, Run, Sample
from vantage.runs.prepare import resumed
from vantage.runs.tail import Line, number
from vantage.stored import Json
from vantage.text import storable

MOST = 2**31 - 1
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
    keys = _key_ids({name for line in lines for name in _values(line)})
    head = f"{target.run}\t{target.attempt}"
    with connection.cursor() as cursor:
        cursor.execute(TEMPORARY)
        with cursor.copy(f"COPY incoming ({COLUMNS}) FROM STDIN") as copy:
            for line in lines:
                place = f"{whole(line['seq'])}\t{whole(line.get('step'))}\t{number(line.get('time'))!r}"
                rows = (
                    f"{head}\t{keys[name[:200]]}\t{place}\t{number(value)!r}\n" for name, value in _values(line).items()
                )
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
            step = None if data.get("from_step") is None else whole(data["from_step"])
            resumed(target.run, target.attempt, step, in_warm_start=data.get("stage") == "warm_start")


STORE: dict[str, Callable[[Target, list[Line]], None]] = {
    "metrics": _store_metrics,
    "samples": _store_samples,
    "events": _store_events,
}


def _key_ids(names: set[str]) -> dict[str, int]:
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
    return 0 if warm else whole(line.get("step"))


def _values(line: Line) -> dict[str, Json]:
    values = line.get("values")
    return values if isinstance(values, dict) else {}


def _sample(target: Target, line: Line) -> Sample:
    return Sample(
        run_id=target.run,
        attempt=target.attempt,
        seq=whole(line["seq"]),
        step=whole(line.get("step")),
        time=number(line.get("time")),
        prompt_id=str(line.get("prompt_id", "")),
        group=whole(line.get("group")),
        index=whole(line.get("index")),
        prompt=str(line.get("prompt", "")),
        text=str(line.get("text", "")),
        num_tokens=whole(line.get("num_tokens")),
        reward=_optional(line.get("reward")),
        parts=line.get("parts") or {},
        correct=line.get("correct"),
        advantage=_optional(line.get("advantage")),
        finish=str(line.get("finish", ""))[:10],
        version=whole(line.get("version")),
        tokens=line.get("tokens"),
    )


def _event(target: Target, line: Line) -> Event:
    return Event(
        run_id=target.run,
        attempt=target.attempt,
        seq=whole(line["seq"]),
        step=whole(line.get("step")),
        time=number(line.get("time")),
        kind=str(line.get("kind", ""))[:20],
        data=line.get("data") or {},
    )


def _checkpoint(target: Target, line: Line) -> Checkpoint:
    data = line.get("data")
    told = data if isinstance(data, dict) else {}
    step = whole(told.get("step", line.get("step")))
    folder = str(told.get("folder", f"checkpoints/step-{step:06d}"))[:200]
    return Checkpoint(
        run_id=target.run, attempt=target.attempt, step=step, folder=folder, bytes=whole(told.get("bytes"))
    )


def _optional(value: Json) -> float | None:
    return None if value is None else number(value)


def whole(value: Json) -> int:
    """Read a count or a step; what no integer column takes is cut to its range."""
    found = number(value)
    return int(min(max(found, -MOST), MOST)) if math.isfinite(found) else 0

"""The newest values of some metrics for many runs at once: what a table of runs and a run's header show."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from django.db import connection

from vantage.runs.models import MetricKey

# Newest first among current rows: a step that a resumed attempt repeats counts once, the repeated one.
NEWEST = """
    SELECT wanted.run, wanted.key, newest.step, newest.time, newest.value
    FROM unnest(%s::bigint[], %s::bigint[]) AS wanted(run, key) CROSS JOIN LATERAL (
        SELECT row.step, row.time, row.value FROM runs_metricrow AS row
        JOIN runs_attempt AS attempt ON attempt.run_id = row.run_id AND attempt.number = row.attempt
        WHERE row.run_id = wanted.run AND row.key_id = wanted.key AND row.step >= coalesce(attempt.resumed_from, 0)
              AND row.step <= coalesce(attempt.superseded_after, 2147483647)
        ORDER BY row.step DESC, row.attempt DESC, row.seq DESC LIMIT %s
    ) AS newest"""


@dataclass(frozen=True)
class Point:
    """One value, as it was reported: it may be NaN or infinite."""

    step: int
    time: float
    value: float

    @property
    def is_finite(self) -> bool:
        return math.isfinite(self.value)


def newest(wanted: Iterable[tuple[int, str]], most: int = 1) -> dict[tuple[int, str], list[Point]]:
    """For each (run, metric name) return its newest points, oldest of them first."""
    pairs = list(wanted)
    ids = dict(MetricKey.objects.filter(name__in={name for _, name in pairs}).values_list("name", "pk"))
    known = [(run, ids[name]) for run, name in pairs if name in ids]
    names = {pk: name for name, pk in ids.items()}
    found: dict[tuple[int, str], list[Point]] = {}
    with connection.cursor() as cursor:
        cursor.execute(NEWEST, [[run for run, _ in known], [key for _, key in known], most])
        for run, key, step, time, value in cursor.fetchall():
            found.setdefault((run, names[key]), []).insert(0, Point(step, time, value))
    return found

"""The current rows of one metric of one run, read with SQL: one row per step, of the latest attempt and highest seq."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

from django.db import connection

from vantage.runs.current import NO_END, Stretch, stretches, superseded
from vantage.runs.models import MetricKey, Run

Axis = Literal["step", "time", "tokens", "flops"]
CUMULATIVE = {"tokens": "tokens/generated", "flops": "compute/flops"}  # metrics that can be an x axis
Parameters = dict[str, object]

WHERE = "run_id = %(run)s AND key_id = %({key})s AND step BETWEEN %(first)s AND %(end)s AND ({current})"
NEWEST = "ORDER BY step, attempt DESC, seq DESC"
PLAIN = f"SELECT DISTINCT ON (step) step, {{x}} AS x, value FROM runs_metricrow WHERE {{where}} {NEWEST}"
ALONG = f"""
    SELECT step, coalesce(axis.x, 0) AS x, value FROM ({PLAIN}) AS plain
    LEFT JOIN (SELECT DISTINCT ON (step) step, {{sane}} AS x FROM runs_metricrow WHERE {{axis_where}} {NEWEST}) AS axis
    USING (step) WHERE axis.x IS NOT NULL OR step = 0"""
# What cannot be a place on an axis is null there: NaN, infinities and times that no clock shows.
SANE_TIME = "CASE WHEN time BETWEEN 0 AND 1e11 THEN time END"
SANE_VALUE = "CASE WHEN value BETWEEN 0 AND 1e100 THEN value END"
# NaN sorts above infinity, so finite takes two comparisons. The last value is looked up: cheaper than array_agg.
BUCKETS = """
    WITH bucket AS (
        SELECT min(value) FILTER (WHERE finite) AS low, max(value) FILTER (WHERE finite) AS high,
               count(*) FILTER (WHERE finite) AS finite, count(*) FILTER (WHERE NOT finite) AS nonfinite,
               coalesce(max(step) FILTER (WHERE finite), max(step)) AS step,
               coalesce(max(x) FILTER (WHERE finite), max(x)) AS x
        FROM (SELECT *, value > '-Infinity' AND value < 'Infinity' AS finite FROM ({rows}) AS shown
              WHERE {within}) AS marked
        GROUP BY floor(x / %(width)s))
    SELECT x, low, high, CASE WHEN finite > 0 THEN value END, finite, nonfinite, ({num_rows})
    FROM bucket CROSS JOIN LATERAL (
        SELECT value FROM runs_metricrow WHERE run_id = %(run)s AND key_id = %(key)s AND step = bucket.step
        AND ({current}) ORDER BY attempt DESC, seq DESC LIMIT 1) AS last ORDER BY x"""


@dataclass(frozen=True)
class Rows:
    """Where the rows are and what x means for them."""

    run: int
    key: int
    axis: Axis
    axis_key: int  # of the cumulative metric that is x; 0: x is the step or the time
    kept: list[Stretch]

    @classmethod
    def of(cls, runs: list[Run], key: str, axis: Axis) -> list[Self]:
        found = dict(MetricKey.objects.filter(name__in=[key, CUMULATIVE.get(axis, "")]).values_list("name", "pk"))
        keys = found.get(key, 0), found.get(CUMULATIVE.get(axis, ""), 0)
        kept = stretches(runs, key, timed=axis == "time")
        return [cls(run.pk, keys[0], axis, keys[1], kept[run.pk]) for run in runs]

    @classmethod
    def superseded(cls, run: Run, key: str, axis: Axis) -> list[Self]:
        """What is not current, an attempt each."""
        [current] = cls.of([run], key, axis)
        return [replace(current, kept=[one]) for one in superseded(run, key, timed=axis == "time")]

    def span(self) -> tuple[float, float] | None:
        """Return the smallest and largest x, or None where nothing was reported."""
        steps = self._fetch(f"SELECT min(step), max(step) FROM runs_metricrow WHERE {self._where()}")[0]
        if steps[0] is None or self.axis == "step":
            return None if steps[0] is None else (steps[0], steps[1])
        ends = [self._fetch(self._rows(), first=step, end=step) for step in steps]
        low, high = ends[0][0][1] if ends[0] else 0.0, ends[1][0][1] if ends[1] else None
        return None if low is None or high is None else (low, high)

    def buckets(self, low: float, high: float, width: float, *, whole: bool) -> Sequence[tuple]:
        """Return per bucket: x, min, max, last, number of finite and of other values; and of all rows, if known."""
        # Postgres guesses that a condition on x leaves few rows, and then sorts: it is given only where it cuts.
        cut = self.axis != "step" and not whole
        sql = BUCKETS.format(
            rows=self._rows(),
            current=self._current(),
            within="x BETWEEN %(low)s AND %(high)s" if cut else "TRUE",
            num_rows="SELECT NULL" if cut else f"SELECT count(*) FROM runs_metricrow WHERE {self._where()}",
        )
        return self._fetch(sql, low=low, high=high, width=width, **self._steps(low, high))

    def _steps(self, low: float, high: float) -> dict[str, float]:
        return {"first": low, "end": high} if self.axis == "step" else {}

    def _rows(self) -> str:
        plain = {"x": self._x(), "where": self._where()}
        return (
            ALONG.format(**plain, axis_where=self._where("axis"), sane=SANE_VALUE)
            if self.axis in CUMULATIVE
            else PLAIN.format(**plain)
        )

    def _where(self, key: str = "key") -> str:
        return WHERE.format(key=key, current=self._current())

    def _x(self) -> str:
        if self.axis != "time":
            return "step::float8"
        whens = " ".join(f"WHEN {one.attempt} THEN {one.shift!r}" for one in self.kept)
        return f"{SANE_TIME} - CASE attempt {whens} ELSE 0 END"

    def _current(self) -> str:
        """Every number here is ours: attempts and steps of the database."""
        if [(one.attempt, one.low, one.high) for one in self.kept] == [(1, 0, NO_END)]:
            return "attempt = 1"
        pieces = [f"attempt = {one.attempt} AND step BETWEEN {one.low} AND {one.high}" for one in self.kept]
        return " OR ".join(pieces) or "FALSE"

    def _fetch(self, sql: str, **parameters: float) -> Sequence[tuple]:
        known: Parameters = {"run": self.run, "key": self.key, "axis": self.axis_key, "first": 0, "end": NO_END}
        with connection.cursor() as cursor:
            cursor.execute(sql, known | parameters)
            return cursor.fetchall()

"""A metric as a chart reads it: buckets at edges k * 2^n, so a live chart does not jitter and no spike is lost."""

import math
from dataclasses import asdict, dataclass, field

from vantage.runs.models import Run
from vantage.runs.rows import Axis, Rows

__all__ = ["Axis", "Series", "bucket_width", "series", "series_of", "superseded_series"]


FARTHEST = 1e30  # that an axis may be asked to reach: far beyond steps, seconds and operations


@dataclass
class Series:
    """Columns of equal length, one entry per bucket that holds a value; JSON-safe: what isn't finite is None."""

    width: float  # of a bucket, in units of x: a power of two; a step axis at width 1 shows every value
    x: list[float] = field(default_factory=list)  # of the last finite value (of the last value, if none is finite)
    min: list[float | None] = field(default_factory=list)
    max: list[float | None] = field(default_factory=list)
    last: list[float | None] = field(default_factory=list)
    count: list[int] = field(default_factory=list)  # finite values
    nonfinite: list[int] = field(default_factory=list)
    repeated: int = 0  # values not shown because a later one has the same step; 0 where another axis is zoomed

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def series(
    run: Run, key: str, *, x: Axis = "step", low: float | None = None, high: float | None = None, points: int = 400
) -> Series:
    """Read one metric of one run in about `points` buckets, between low and high in units of x."""
    return series_of([run], key, x=x, low=low, high=high, points=points)[run.pk]


def series_of(
    runs: list[Run],
    key: str,
    *,
    x: Axis = "step",
    low: float | None = None,
    high: float | None = None,
    points: int = 400,
) -> dict[int, Series]:
    """Read one metric of many runs, cut at the same edges, so that they can be compared and banded."""
    sources = Rows.of(runs, key, x)
    spans = [span for rows in sources if (span := rows.span())]
    if not spans:
        return {rows.run: Series(1) for rows in sources}
    first = min(span[0] for span in spans) if low is None else max(low, -FARTHEST)
    last = max(span[1] for span in spans) if high is None else min(high, FARTHEST)
    width = bucket_width(last - first, points, whole=x == "step")
    whole = low is None and high is None
    return {rows.run: _read(rows, first, last, width, whole) for rows in sources}


def superseded_series(
    run: Run, key: str, width: float, *, x: Axis = "step", low: float | None = None, high: float | None = None
) -> dict[int, Series]:
    """Read by attempt what is not current, in buckets as wide as those of the current line."""
    found: dict[int, Series] = {}
    for rows in Rows.superseded(run, key, x):
        ends = rows.span()
        if ends is not None:
            first = ends[0] if low is None else max(low, -FARTHEST)
            last = ends[1] if high is None else min(high, FARTHEST)
            found[rows.kept[0].attempt] = _read(rows, first, last, width, low is None and high is None)
    return {attempt: one for attempt, one in found.items() if one.x}


def bucket_width(span: float, points: int, *, whole: bool) -> float:
    """Return the smallest power of two that cuts the span into at most `points` buckets (and one for the rest)."""
    least = span / max(points, 1)
    if whole and least <= 1:
        return 1
    return 2.0 ** math.ceil(math.log2(least)) if least > 0 else 1


def _read(rows: Rows, low: float, high: float, width: float, whole: bool) -> Series:
    found = Series(width)
    buckets = rows.buckets(low, high, width, whole=whole)
    for x, least, most, newest, count, nonfinite, _ in buckets:
        if x is None:  # it has no place on this axis
            continue
        found.x.append(x)
        found.min.append(least)
        found.max.append(most)
        found.last.append(newest)
        found.count.append(count)
        found.nonfinite.append(nonfinite)
    if buckets and (num_rows := buckets[0][-1]) is not None:
        found.repeated = num_rows - sum(found.count) - sum(found.nonfinite)
    return found

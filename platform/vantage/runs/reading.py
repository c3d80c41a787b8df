"""The figures of one run: which charts were asked for, since where, read and drawn as data."""

import csv
import math
from dataclasses import dataclass
from io import StringIO
from typing import Self

from django.db import connection
from django.http import QueryDict
from vantage_trainer.spec import RunSpec

from vantage.runs.charts import Shown, charts_of
from vantage.runs.figures import AXIS_TITLES, Figure, figure, from_axis, keys_read, to_axis
from vantage.runs.models import Run
from vantage.runs.series import Axis, series, superseded_series

AXES: dict[str, Axis] = {axis: axis for axis in AXIS_TITLES}
EVERY_POINT = 10**7
DANGEROUS = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet takes text that begins so for a formula
KEYS_OF_RUN = """
    WITH RECURSIVE found AS (
        (SELECT key_id FROM runs_metricrow WHERE run_id = %(run)s ORDER BY key_id LIMIT 1) UNION ALL
        SELECT (SELECT key_id FROM runs_metricrow WHERE run_id = %(run)s AND key_id > found.key_id
                ORDER BY key_id LIMIT 1)
        FROM found WHERE found.key_id IS NOT NULL)
    SELECT name, id FROM runs_metrickey WHERE id IN (SELECT key_id FROM found)"""


@dataclass(frozen=True)
class Asked:
    """The charts a page wants: each from a place on (the rest is drawn already), or all of them between two places."""

    x: Axis
    since: dict[str, float | None]
    low: float | None
    high: float | None
    superseded: bool = False  # draw what is not current too

    @classmethod
    def of(cls, query: QueryDict) -> Self:
        x = AXES.get(query.get("x", ""), "step")
        wanted = [chart.partition("@") for chart in query.getlist("chart")]
        since = {slug: _place(place) for slug, _, place in wanted}
        ends = _place(query.get("low", "")), _place(query.get("high", ""))
        return cls(x, since, *ends, wants_superseded(query))


def wants_superseded(query: QueryDict) -> bool:
    return query.get("superseded") == "1"


def reported_keys(run: Run) -> dict[str, int]:
    """Names and ids of the metrics that a run has reported: one index look-up per name, however many rows there are."""
    with connection.cursor() as cursor:
        cursor.execute(KEYS_OF_RUN, {"run": run.pk})
        return dict(cursor.fetchall())


def shown_charts(run: Run) -> list[Shown]:
    return charts_of(RunSpec.model_validate(run.spec), set(reported_keys(run)))


def figures(run: Run, asked: Asked) -> dict[str, Figure]:
    """Draw the asked charts of a run; `since` says from where a figure holds, null for all of it."""
    wanted = [shown for shown in shown_charts(run) if shown.chart.slug in asked.since]
    return {shown.chart.slug: _figure(run, shown, asked) for shown in wanted}


def csv_of(run: Run, shown: Shown, x: Axis, *, superseded: bool = False) -> str:
    """Every point of a chart as CSV: x, then one column per metric; empty where a metric has none."""
    axis: Axis = "step" if shown.chart.own_steps else x
    found = {key: series(run, key, x=axis, points=EVERY_POINT) for key in shown.keys}
    for key in shown.keys if superseded else ():
        lost = superseded_series(run, key, found[key].width, x=axis)
        found |= {f"{key} (superseded, attempt {attempt})": one for attempt, one in lost.items()}
    columns = {key: dict(zip(one.x, one.last, strict=True)) for key, one in found.items()}
    out = StringIO()
    writer = csv.writer(out)
    writer.writerow([axis, *(_harmless(key) for key in columns)])
    for place in sorted({place for column in columns.values() for place in column}):
        values = (column.get(place) for column in columns.values())
        writer.writerow([to_axis(place, axis), *("" if value is None else repr(value) for value in values)])
    return out.getvalue()


def _figure(run: Run, shown: Shown, asked: Asked) -> Figure:
    x: Axis = "step" if shown.chart.own_steps else asked.x
    since = asked.since[shown.chart.slug]
    low, high = (since, None) if asked.low is None else (asked.low, asked.high)
    first, last = (None if end is None else from_axis(end, x) for end in (low, high))
    found = {key: series(run, key, x=x, low=first, high=last) for key in keys_read(shown)}
    lost = {}
    if asked.superseded:
        lost = {key: superseded_series(run, key, found[key].width, x=x, low=first, high=last) for key in shown.keys}
    return {**figure(shown, {key: one for key, one in found.items() if one.x}, x, lost), "since": since}


def _place(text: str) -> float | None:
    try:
        place = float(text)
    except ValueError:
        return None
    return place if math.isfinite(place) else None


def _harmless(text: str) -> str:
    return f"'{text}" if text.startswith(DANGEROUS) else text

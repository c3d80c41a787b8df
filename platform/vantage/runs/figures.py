"""Charts as Plotly figures: plain data, colours by name, so that one module draws them in any theme."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha1
from html import escape

from vantage_trainer.metrics import find

from vantage.runs.charts import Shown, title_of
from vantage.runs.series import Axis, Series

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Figure = dict[str, Json]
Column = list[Json]
NUM_HUES = 8
DASHES = ("solid", "dash", "dot", "dashdot")
AXIS_TITLES: dict[Axis, str] = {
    "step": "Step",
    "time": "Wall time (min)",
    "tokens": "Generated tokens",
    "flops": "FLOPs",
}
SECONDS_PER_UNIT = 60
FAINT = 60  # percent of its hue that a superseded line has
SHORTENED = ("tokens", "FLOP", "bytes", "tokens/s")  # units whose ticks read 12k, 3M
LOW, HIGH, LINE, MARKS = range(4)  # the order of one metric's traces: an area is filled down to the trace before it


@dataclass(frozen=True)
class Pen:
    """The look of the n-th line: eight hues, then dashes."""

    index: int

    @property
    def hue(self) -> str:
        return f"data-{self.index % NUM_HUES + 1}"

    @property
    def dash(self) -> str:
        return DASHES[self.index // NUM_HUES % len(DASHES)]


def figure(
    shown: Shown, found: dict[str, Series], x: Axis, superseded: Mapping[str, Mapping[int, Series]] | None = None
) -> Figure:
    """Draw a chart as data: for each metric its line, its spread inside buckets, and marks where it was not finite.

    What is superseded, by metric and attempt, comes first and so lies behind.
    """
    axis: Axis = "step" if shown.chart.own_steps else x
    traces: Column = list(_superseded(shown, superseded or {}, axis))
    for index, key in enumerate(shown.keys):
        if key in found:
            traces += [_named(key, index, rank, trace) for rank, trace in _traces(shown, key, found, Pen(index), axis)]
    return {"data": traces, "layout": layout(shown, axis)}


def band_keys(shown: Shown, key: str) -> tuple[str, str] | None:
    """The metrics that hold the interval of a line: those of pass@1 stand beside it."""
    if shown.chart.band is None or not key.endswith("/pass@1"):
        return None
    head = key.rpartition("/")[0]
    low, high = shown.chart.band
    return f"{head}/{low}", f"{head}/{high}"


def keys_read(shown: Shown) -> list[str]:
    """Every metric that drawing this chart needs."""
    return [*shown.keys, *(end for key in shown.keys for end in band_keys(shown, key) or ())]


def layout(shown: Shown, x: Axis) -> Figure:
    """What is the chart's own in the layout; fonts, colours and margins are the drawing module's."""
    yaxis: Figure = {"range": [0, 1]} if shown.chart.whole else {}
    if shown.unit == "fraction" and not shown.chart.whole:
        yaxis["rangemode"] = "nonnegative"
    if shown.unit in SHORTENED:
        yaxis["tickformat"] = "~s"
    xaxis: Figure = {"title": "Warm-start step" if shown.chart.own_steps else AXIS_TITLES[x]}
    if x in ("tokens", "flops"):
        xaxis["tickformat"] = "~s"
    return {"xaxis": xaxis, "yaxis": yaxis}


def to_axis(seconds_or_steps: float, x: Axis) -> float:
    """Turn a place as it is stored into one as it is shown."""
    return seconds_or_steps / SECONDS_PER_UNIT if x == "time" else seconds_or_steps


def from_axis(place: float, x: Axis) -> float:
    """Undo `to_axis`."""
    return place * SECONDS_PER_UNIT if x == "time" else place


def _named(key: str, index: int, rank: int, trace: Figure) -> Figure:
    meta = trace["meta"]
    assert isinstance(meta, dict)
    return {**trace, "uid": f"{_uid(key)}-{rank}", "meta": {**meta, "key": key, "order": index * (MARKS + 1) + rank}}


def _uid(key: str) -> str:
    """Name a trace: Plotly uses the name in CSS selectors."""
    return f"t{sha1(key.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _traces(shown: Shown, key: str, found: dict[str, Series], pen: Pen, x: Axis) -> Iterator[tuple[int, Figure]]:
    one = found[key]
    xs = _places(one, x)
    band = band_keys(shown, key)
    if band and all(end in found for end in band):
        low, high = (found[end] for end in band)
        yield from _between((_places(low, x), [*low.last]), (_places(high, x), [*high.last]), pen)
    elif not shown.chart.stacked and one.min != one.max:
        yield from _between((xs, [*one.min]), (xs, [*one.max]), pen)
    yield LINE, _line(shown, key, xs, [*one.last], pen)
    if any(one.nonfinite):
        yield MARKS, _marks(key, xs, one.nonfinite, pen)


def _superseded(shown: Shown, lost: Mapping[str, Mapping[int, Series]], x: Axis) -> Iterator[Figure]:
    places = [(index, key, attempt) for index, key in enumerate(shown.keys) for attempt in lost.get(key, ())]
    for order, (index, key, attempt) in enumerate(places, start=-len(places)):
        one, pen, label = lost[key][attempt], Pen(index), f"{title_of(key)}, attempt {attempt}"
        meta: Figure = {"role": "superseded", "key": key, "label": label, "attempt": attempt, "order": order}
        yield {
            **({"stackgroup": f"attempt {attempt}", "fillcolor": "rgba(0,0,0,0)"} if shown.chart.stacked else {}),
            "type": "scatter",
            "mode": "lines",
            "name": escape(f"{label} (superseded)", quote=False),
            "x": _places(one, x),
            "y": [*one.last],
            "line": {"color": f"{pen.hue}/{FAINT}", "dash": "dash", "width": 1.5},
            "hovertemplate": "%{y:.7~g}<extra>%{fullData.name}</extra>",
            "uid": f"{_uid(key)}-attempt-{attempt}",
            "meta": {**meta, "unit": metric.unit if (metric := find(key)) else ""},
        }


def _places(one: Series, x: Axis) -> Column:
    return [to_axis(place, x) for place in one.x]


def _line(shown: Shown, key: str, xs: Column, ys: Column, pen: Pen) -> Figure:
    metric, evaluated = find(key), key.startswith("eval/")
    meta: Figure = {
        "role": "line",
        "label": title_of(key),
        "unit": metric.unit if metric else "",
        "smooth": not shown.chart.stacked and not evaluated,
    }
    line: Figure = {"type": "scatter", "mode": "lines", "name": escape(title_of(key), quote=False), "x": xs, "y": ys}
    line |= {"line": {"color": pen.hue, "dash": pen.dash, "width": 1.5}, "meta": meta}
    if shown.chart.stacked:
        line |= {"stackgroup": "one", "fillcolor": f"{pen.hue}/55", "line": {"color": pen.hue, "width": 0.5}}
    if evaluated:
        line |= {"mode": "lines+markers", "marker": {"size": 5, "color": pen.hue}}
    return line


def _between(low: tuple[Column, Column], high: tuple[Column, Column], pen: Pen) -> Iterator[tuple[int, Figure]]:
    """Two invisible lines with the area between them filled."""
    edge: Figure = {"type": "scatter", "mode": "lines", "line": {"width": 0, "color": pen.hue}, "hoverinfo": "skip"}
    edge["meta"] = {"role": "edge"}
    yield LOW, {**edge, "x": low[0], "y": low[1]}
    yield HIGH, {**edge, "x": high[0], "y": high[1], "fill": "tonexty", "fillcolor": f"{pen.hue}/18"}


def _marks(key: str, xs: Column, counts: list[int], pen: Pen) -> Figure:
    """Crosses along the bottom where values were NaN or infinite: they are in no line, but never hidden."""
    places = [(x, count) for x, count in zip(xs, counts, strict=True) if count]
    label = f"{title_of(key)}: NaN or infinite"
    return {
        "type": "scatter",
        "mode": "markers",
        "name": escape(label, quote=False),
        "x": [x for x, _ in places],
        "y": [0.03] * len(places),
        "yaxis": "y2",
        "text": [f"{count} not finite" for _, count in places],
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {"symbol": "x-thin", "size": 7, "color": pen.hue, "line": {"width": 1.5, "color": pen.hue}},
        "meta": {"role": "nonfinite", "label": label},
    }

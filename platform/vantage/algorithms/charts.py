"""The three charts of an algorithm as Plotly figures: plain data, colours by name, with a table behind each."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Figure = dict[str, Json]
Column = list[Json]
Answer = dict[str, Json]
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
HUES = 2  # of one algorithm in one chart: pushed up or down, right or wrong, the one prompt or the other
NEAR = 0.02  # a trust region closer to 1 than this is drawn enlarged
MOST_ROWS = 60


@dataclass(frozen=True)
class Chart:
    slug: str
    title: str
    says: str
    x: str


CHARTS = (
    Chart(
        "weight",
        "Gradient weight against ratio",
        "What multiplies the advantage in the gradient of a token whose probability has changed by this ratio.",
        "Ratio of the token's probability to what it was",
    ),
    Chart(
        "advantage",
        "Advantage against success rate",
        "Of a right and of a wrong answer, by the share of right answers in the group; h′(p) is how much a prompt of "
        "that success rate counts in the objective. Statistics of a batch are over one group for each number of right "
        "answers.",
        "Share of right answers in the group",
    ),
    Chart(
        "coefficient",
        "Coefficient against length",
        "What each token of a response counts in the loss, in a step of two prompts: one with answers up to the "
        "response limit, one with answers up to a quarter of it.",
        "Tokens of the response",
    ),
)


@dataclass(frozen=True)
class Line:
    """A line before it is drawn: what it is called, where it goes, and its look within its algorithm."""

    label: str
    x: Column
    y: Column
    hue: int
    dash: int = 0
    dots: bool = False


Named = Sequence[tuple[str, Answer]]  # title and curves of one algorithm, or of two that are compared


def figures(named: Named) -> dict[str, Figure]:
    """Draw the curves of one algorithm, or of several over each other."""
    made = {}
    for chart in CHARTS:
        drawn = [(title, list(LINES[chart.slug](of(curves, chart.slug)))) for title, curves in named]
        made[chart.slug] = figure(chart, drawn, [of(curves, chart.slug) for _, curves in named])
    return made


def figure(chart: Chart, drawn: Sequence[tuple[str, list[Line]]], curves: list[Answer]) -> Figure:
    several = len(drawn) > 1
    traces: Column = []
    for index, (title, lines) in enumerate(drawn):
        for line in lines:
            label = f"{title}: {line.label}" if several else line.label
            traces.append(trace(line, label, index, len(traces)))
    layout: Figure = {"xaxis": {"title": chart.x}, "yaxis": {}}
    layout |= LAYOUTS[chart.slug](chart, [line for _, lines in drawn for line in lines])
    return {"data": traces, "layout": layout, "table": table(chart, traces)}


def trace(line: Line, label: str, index: int, order: int) -> Figure:
    hue = f"data-{index * HUES + line.hue + 1}"
    look: Figure = {"color": hue, "dash": DASHES[line.dash % len(DASHES)], "width": 1.75}
    made: Figure = {"type": "scatter", "mode": "lines", "name": label.replace("<", "&lt;"), "uid": f"c{order}"}
    made |= {"x": line.x, "y": line.y, "line": look}
    if line.dots:
        made |= {"mode": "lines+markers", "marker": {"size": 5, "color": hue}}
    return made | {"meta": {"role": "line", "label": label, "key": str(order), "unit": "", "order": order}}


def of(answer: Answer, name: str) -> Answer:
    found = answer[name]
    assert isinstance(found, dict)
    return found


def column(answer: Answer, name: str) -> Column:
    found = answer[name]
    assert isinstance(found, list)
    return found


# Lines of each chart


def weight_lines(curve: Answer) -> Iterator[Line]:
    looks: dict[tuple[Json, Json], int] = {}
    for one in column(curve, "lines"):
        assert isinstance(one, dict)
        dash = looks.setdefault((one["anchor"], one["mismatch"]), len(looks))
        is_up = one["sign"] == 1
        label = ", ".join([f"A {'>' if is_up else '<'} 0", *situation(one)])
        yield Line(label, column(curve, "ratio"), column(one, "weight"), 0 if is_up else 1, dash)


def situation(line: Answer) -> Iterator[str]:
    if line["anchor"] is not None:
        yield f"probability {line['anchor']:g}"
    if line["mismatch"] is not None:
        yield f"trainer/generator {line['mismatch']:g}"


def advantage_lines(curve: Answer) -> Iterator[Line]:
    rate = column(curve, "rate")
    yield Line("right answer", rate, column(curve, "right"), 0, dots=len(rate) <= MOST_ROWS)
    yield Line("wrong answer", rate, column(curve, "wrong"), 1, dots=len(rate) <= MOST_ROWS)
    yield Line("h′(p)", column(curve, "p"), column(curve, "slope"), 0, 2)


PROMPTS = {"long": "answers up to the limit", "short": "answers up to a quarter"}


def coefficient_lines(curve: Answer) -> Iterator[Line]:
    for number, one in enumerate(column(curve, "lines")):
        assert isinstance(one, dict)
        yield Line(PROMPTS[str(one["prompt"])], column(one, "length"), column(one, "coef"), number, number, dots=True)


LINES = {"weight": weight_lines, "advantage": advantage_lines, "coefficient": coefficient_lines}


# What is a chart's own in the layout


def weight_layout(chart: Chart, lines: list[Line]) -> Figure:
    """The whole span, or the neighbourhood of 1 where all that happens, happens there."""
    first = min((edge for line in lines for edge in edges(line)), default=math.inf)
    if first > NEAR:
        return {"xaxis": {"title": chart.x, "range": [0, 3]}, "yaxis": {"rangemode": "tozero"}}
    span = 5 * first
    return {"xaxis": {"title": chart.x, "range": [1 - span, 1 + span]}, "yaxis": {"rangemode": "tozero"}}


def edges(line: Line) -> Iterator[float]:
    """How far from 1 a weight jumps: where a gradient ends."""
    points = [(x, y) for x, y in zip(line.x, line.y, strict=True) if isinstance(x, float) and isinstance(y, float)]
    for (x, y), (_, after) in zip(points, points[1:], strict=False):
        if (y == 0) != (after == 0):
            yield abs(x - 1)


def advantage_layout(chart: Chart, lines: list[Line]) -> Figure:
    return {
        "xaxis": {"title": chart.x, "range": [-0.02, 1.02]},
        "yaxis": {"zeroline": True, "zerolinecolor": "outline"},
    }


def coefficient_layout(chart: Chart, lines: list[Line]) -> Figure:
    """Both axes in powers of ten: a power of the length is a straight line."""
    lengths = log_axis([x for line in lines for x in line.x], 0.05)
    return {"xaxis": {"title": chart.x, **lengths}, "yaxis": log_axis([y for line in lines for y in line.y], 0.2)}


def log_axis(values: Column, room: float) -> Figure:
    """An axis in powers of ten around the values, with ticks at 1, 2 and 5 of each."""
    positive = [math.log10(value) for value in values if isinstance(value, (int, float)) and value > 0] or [0]
    low, high = min(positive) - room, max(positive) + room
    exponents = range(math.floor(low), math.ceil(high) + 1)
    ticks: Column = [digit * 10.0**exponent for exponent in exponents for digit in (1, 2, 5)]
    names: Column = [f"{tick:g}" for tick in ticks]
    return {"type": "log", "range": [low, high], "tickmode": "array", "tickvals": ticks, "ticktext": names}


LAYOUTS = {"weight": weight_layout, "advantage": advantage_layout, "coefficient": coefficient_layout}


# The table behind a chart


def table(chart: Chart, traces: Column) -> Figure:
    """Some of the points of every line; places that several lines share stand in one row."""
    rows: dict[float, dict[int, Json]] = {}
    for number, one in enumerate(traces):
        assert isinstance(one, dict)
        xs, ys = column(one, "x"), column(one, "y")
        for x, y in thinned(list(zip(xs, ys, strict=True))):
            assert isinstance(x, (int, float))
            rows.setdefault(x, {})[number] = y
    head: Column = [chart.x, *[label_of(one) for one in traces]]
    body: Column = [[x, *[rows[x].get(number) for number in range(len(traces))]] for x in sorted(rows)]
    return {"head": head, "rows": body}


def thinned(points: list[tuple[Json, Json]]) -> list[tuple[Json, Json]]:
    every = max(1, math.ceil(len(points) / MOST_ROWS))
    return points[::every]


def label_of(one: Json) -> Json:
    assert isinstance(one, dict) and isinstance(one["meta"], dict)
    return one["meta"]["label"]

"""A line small enough for a table cell, as the points of an SVG polyline."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 72, 20


@dataclass(frozen=True)
class Spark:
    """Points of a polyline and where its last value lies."""

    points: str
    last_x: float
    last_y: float


def spark(places: Sequence[tuple[float, float]]) -> Spark | None:
    """Scale (x, value) pairs into the cell; what is not finite is left out, and two points are the least."""
    finite = [(x, value) for x, value in places if math.isfinite(value)]
    if len(finite) < 2:
        return None
    xs, values = [x for x, _ in finite], [value for _, value in finite]
    scaled = [(_scale(x, xs) * WIDTH, HEIGHT - _scale(value, values) * HEIGHT) for x, value in finite]
    return Spark(" ".join(f"{x:.1f},{y:.1f}" for x, y in scaled), round(scaled[-1][0], 1), round(scaled[-1][1], 1))


def _scale(value: float, among: Sequence[float]) -> float:
    low, high = min(among), max(among)
    return 0.5 if low == high else (value / 2 - low / 2) / (high / 2 - low / 2)  # halves: 2e308 is not a number

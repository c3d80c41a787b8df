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
    """Draw shares over x on one scale, 0 to 1, so that lines compare; what is not finite is left out."""
    finite = [(x, share) for x, share in places if math.isfinite(share)]
    if len(finite) < 2:
        return None
    low, high = finite[0][0], finite[-1][0]
    scaled = [((x - low) / ((high - low) or 1) * WIDTH, HEIGHT - min(1, max(0, share)) * HEIGHT) for x, share in finite]
    return Spark(" ".join(f"{x:.1f},{y:.1f}" for x, y in scaled), round(scaled[-1][0], 1), round(scaled[-1][1], 1))

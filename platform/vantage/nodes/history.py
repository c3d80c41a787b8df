"""A node's last hour, coarse enough to stand in its row."""

import time

from vantage.nodes.usage import Gauge, Usage

EVERY = 30.0  # seconds between two points
MOST = 120
Shares = dict[str, float]
Point = tuple[float, Shares]


class History:
    """Collects what a gauge sees into points of means; kept across starts of the node."""

    def __init__(self, gauge: Gauge) -> None:
        self.gauge = gauge
        self.points: list[Point] = []
        self._seen: list[Shares] = []

    def begin(self, points: list[Point]) -> None:
        self.points = points
        self.gauge.start()

    def fresh(self) -> dict[str, Usage | list[Point]]:
        """Return the fields of the node's row that have news."""
        usage = self.gauge.take()
        if usage is None:
            return {}
        self._seen.append(shares(usage))
        now = time.time()
        if self.points and now - self.points[-1][0] < EVERY:
            return {"usage": usage}
        self.points = [*self.points, (now, means(self._seen))][-MOST:]
        self._seen = []
        return {"usage": usage, "history": self.points}


def shares(usage: Usage) -> Shares:
    """Return how busy the processor and each GPU were, and how full the memory, as fractions."""
    used, whole = usage["memory"]
    return {"cpu": usage["cpu"], "memory": used / whole} | {name: told[0] for name, told in usage["gpus"].items()}


def means(seen: list[Shares]) -> Shares:
    names = {name for one in seen for name in one}
    columns = {name: [one[name] for one in seen if name in one] for name in sorted(names)}
    return {name: round(sum(column) / len(column), 4) for name, column in columns.items()}

"""Play the queue through: which run starts where, in which order and when, by the rules that nodes follow."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from vantage.nodes.models import Node
from vantage.runs.models import Run
from vantage.runs.querysets import devices_beside, fits, needs_devices

UNKNOWN = 3600.0  # seconds that what is of unknown length counts as, so that the order behind it can be told at all


@dataclass(frozen=True)
class Work:
    """A run that holds devices: for how many more seconds, where that is known."""

    team: int
    node: int
    devices: list[str]
    seconds: float | None


@dataclass(frozen=True)
class Start:
    """Where a waiting run will start, and in how many seconds; None: that hangs on something of unknown length."""

    run: Run
    node: Node
    seconds: float | None


@dataclass
class Play:
    """The nodes that take runs, what holds their devices, and what waits."""

    nodes: list[Node]
    at_work: list[Work]
    waiting: list[Run]
    lengths: Mapping[int, float | None]  # by run: seconds that it would take
    active: Counter[int] = field(default_factory=Counter)  # by team: runs at work anywhere
    _now: float = 0.0
    _unsure: set[int] = field(default_factory=set)  # nodes on which something of unknown length has ended
    _ends: list[tuple[float, bool, Work]] = field(default_factory=list)

    def starts(self) -> list[Start]:
        """Return every start in its order; a run that is not among them fits no node, or its node takes none."""
        self._ends = [self._end(work) for work in self.at_work]
        found: list[Start] = []
        while True:
            found += self._start_all()
            if not self.waiting or not self._ends:
                return found
            self._release()

    def _start_all(self) -> Iterable[Start]:
        for node in self.nodes:
            while start := self._next(node):
                yield start

    def _next(self, node: Node) -> Start | None:
        """The first in the queue that fits the node now; one that waits for devices holds up those that need some."""
        crowded = False
        for run in sorted((run for run in self.waiting if node.carries(run.node)), key=self._place):
            if not fits(run, node) or (crowded and needs_devices(run)):
                continue
            devices = devices_beside(run, node, self._held(node))
            if devices is not None:
                return self._begin(run, node, devices)
            crowded |= needs_devices(run)
        return None

    def _place(self, run: Run) -> tuple:
        """As RunQuerySet.waiting_for sorts."""
        return (-run.priority, self.active[run.team_id], run.turn or run.queued, run.pk)

    def _begin(self, run: Run, node: Node, devices: list[str]) -> Start:
        is_known = node.pk not in self._unsure
        self.waiting.remove(run)
        self.active[run.team_id] += 1
        length = self.lengths.get(run.pk) if is_known else None
        self._ends.append(self._end(Work(run.team_id, node.pk, devices, length)))
        return Start(run, node, self._now if is_known else None)

    def _end(self, work: Work) -> tuple[float, bool, Work]:
        length = UNKNOWN if work.seconds is None else work.seconds
        return self._now + length, work.seconds is not None, work

    def _release(self) -> None:
        first = min(self._ends, key=lambda end: end[0])
        self._ends.remove(first)
        self._now, is_known, work = first
        self.active[work.team] -= 1
        if not is_known and work.devices:
            self._unsure.add(work.node)

    def _held(self, node: Node) -> list[list[str]]:
        return [work.devices for _, _, work in self._ends if work.node == node.pk]

"""The worker nodes, what runs on them, and who waits; a foreign team's run shows as nothing but its place."""

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from vantage.nodes.models import Node
from vantage.runs.models import Attempt, Run
from vantage.runs.pages.queueing import may_order
from vantage.runs.queue_changes import PRIORITIES
from vantage.runs.queue_view import Waiting, queue
from vantage.runs.spark import Spark, spark
from vantage.runs.states import Outcome, Status
from vantage.runs.table import Line, lines
from vantage.teams.access import can, current_team, reader
from vantage.teams.models import Role

MOST_WAITING = 100


@dataclass(frozen=True)
class Shown:
    """A run at work on the page: `run` is None where it belongs to another team."""

    run: Run | None
    attempt: Attempt
    line: Line | None = None


@dataclass(frozen=True)
class Queued:
    """A waiting run on the page: `waiting` is None where it belongs to another team."""

    place: int
    waiting: Waiting | None = None
    may_order: bool = False

    @property
    def priority(self) -> str:
        """The name of its priority, or the number of one without a name."""
        number = self.waiting.run.priority if self.waiting else 0
        return dict(PRIORITIES).get(number, str(number))


@dataclass(frozen=True)
class Meter:
    """One thing of a node that is more or less in use: now, and through the last hour."""

    title: str
    used: float
    whole: float | None  # in bytes; None: `used` is a fraction
    hour: Spark | None


@dataclass(frozen=True)
class Machine:
    """A node, what it works on, and how many waiting runs have to go on there."""

    node: Node
    work: list[Shown]
    num_held: int = 0

    @property
    def state(self) -> str:
        if self.node.silent:
            return "offline"
        return "stopped" if self.node.paused or self.node.draining else "online"

    @property
    def meters(self) -> list[Meter]:
        usage = self.node.usage
        found = [Meter("CPU", usage["cpu"], None, self._hour("cpu"))] if "cpu" in usage else []
        found += [Meter(name, told[0], None, self._hour(name)) for name, told in usage.get("gpus", {}).items()]
        if "memory" in usage:
            found.append(Meter("Memory", usage["memory"][0], usage["memory"][1], self._hour("memory")))
        found += [Meter(f"{name} memory", told[1], told[2], None) for name, told in usage.get("gpus", {}).items()]
        return [*found, Meter("Disk", usage["disk"][0], usage["disk"][1], None)] if "disk" in usage else found

    def _hour(self, name: str) -> Spark | None:
        return spark([(time, shares[name]) for time, shares in self.node.history if name in shares])

    @property
    def num_busy(self) -> int:
        held = {device for shown in self.work for device in shown.attempt.devices}
        return sum(device["id"] in held for device in self.node.devices)


@require_GET
def nodes(request: HttpRequest) -> HttpResponse:
    own = set(reader(request).visible_teams().values_list("pk", flat=True))
    machines = list(Node.objects.visible_to(reader(request)).order_by("name"))
    work, waits = working(own), queue()
    context = {
        "section": "nodes",
        "machines": [Machine(node, work.get(node.pk, []), num_held(node, waits)) for node in machines],
        "waiting": [queued(request, one, own) for one in waits[:MOST_WAITING]],
        "num_waiting": Run.objects.filter(status=Status.QUEUED, deleted=None).count(),
        "may_manage": can(request, current_team(request), Role.ADMIN),
        "priorities": PRIORITIES,
    }
    return render(request, "nodes/list.html", context)


def working(own: set[int]) -> dict[int, list[Shown]]:
    """What each node works on."""
    live = list(Attempt.objects.filter(outcome=Outcome.LIVE).select_related("run").order_by("created"))
    seen = {one.run_id: one.run for one in live if one.run.team_id in own and one.run.deleted is None}
    progress = {line.run.pk: line for line in lines(list(seen.values()))}
    found: dict[int, list[Shown]] = {}
    for attempt in live:
        shown = Shown(seen.get(attempt.run_id), attempt, line=progress.get(attempt.run_id))
        found.setdefault(attempt.node_id or 0, []).append(shown)
    return found


def num_held(node: Node, waits: list[Waiting]) -> int:
    """Count the waiting runs whose folder lies on the node."""
    return sum(one.run.node_id == node.pk for one in waits)


def queued(request: HttpRequest, one: Waiting, own: set[int]) -> Queued:
    if one.run.team_id not in own:
        return Queued(one.place)
    return Queued(one.place, one, may_order(request, one.run))

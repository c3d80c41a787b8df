"""The worker nodes, what runs on them, and who waits; a foreign team's run shows as nothing but its place."""

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from vantage.nodes.models import Node
from vantage.runs.models import Attempt, Run
from vantage.runs.states import Outcome, Status
from vantage.runs.table import Line, lines
from vantage.teams.access import reader

MOST_WAITING = 100


@dataclass(frozen=True)
class Shown:
    """A run on the page: `run` is None where it belongs to another team."""

    run: Run | None
    attempt: Attempt | None = None
    place: int = 0
    line: Line | None = None


@dataclass(frozen=True)
class Machine:
    """A node and what it works on."""

    node: Node
    work: list[Shown]

    @property
    def state(self) -> str:
        if self.node.silent:
            return "offline"
        return "stopped" if self.node.paused or self.node.draining else "online"

    @property
    def says(self) -> str:
        if self.node.silent:
            return "silent"
        return "leaving" if self.node.draining else "paused" if self.node.paused else "ready"

    @property
    def num_busy(self) -> int:
        return sum(len(shown.attempt.devices) for shown in self.work if shown.attempt)


@require_GET
def nodes(request: HttpRequest) -> HttpResponse:
    own = set(reader(request).visible_teams().values_list("pk", flat=True))
    machines = list(Node.objects.visible_to(reader(request)).order_by("name"))
    work = working(own)
    context = {
        "section": "nodes",
        "machines": [Machine(node, work.get(node.pk, [])) for node in machines],
        "waiting": waiting(own),
        "num_waiting": Run.objects.filter(status=Status.QUEUED, deleted=None).count(),
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


def waiting(own: set[int]) -> list[Shown]:
    """The queue in the order that placement reads it."""
    queue = Run.objects.filter(status=Status.QUEUED, deleted=None).select_related("created_by")
    rows = queue.order_by("-priority", "queued")[:MOST_WAITING]
    return [Shown(run if run.team_id in own else None, place=place) for place, run in enumerate(rows, 1)]

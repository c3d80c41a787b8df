"""The queue as people see it: each waiting run's place, when it starts, and what it waits for."""

from collections import Counter
from dataclasses import dataclass

from django.db.models import QuerySet
from django.db.models.functions import Coalesce

from vantage.nodes.models import Node
from vantage.runs.models import Attempt, Run
from vantage.runs.querysets import fits
from vantage.runs.queue_order import Play, Start, Work
from vantage.runs.queue_times import lengths, remaining
from vantage.runs.resuming import whereabouts
from vantage.runs.states import ACTIVE, Status

MOST = 200  # waiting runs that are played through; those behind have no place yet


@dataclass(frozen=True)
class Waiting:
    """One waiting run: `starts` says whether any node will take it, `seconds` when, where that is known."""

    run: Run
    place: int
    starts: bool
    seconds: float | None
    why: str


def queue() -> list[Waiting]:
    """Return the waiting runs in the order in which they will start; last those that no node takes as things are."""
    waiting = list(_queued()[:MOST])
    nodes = list(Node.objects.filter(removed=None).order_by("name"))
    takers = [node for node in nodes if node.takes_runs]
    starts = _play(waiting, takers)
    order = [start.run.pk for start in starts]
    waiting.sort(key=lambda run: order.index(run.pk) if run.pk in order else len(order))
    by_run = {start.run.pk: start for start in starts}
    return [_waiting(run, place, by_run.get(run.pk), _able(run, nodes), takers) for place, run in enumerate(waiting, 1)]


def place_of(run: Run) -> Waiting | None:
    """Return where a run stands in the queue; None: it does not wait, or far behind."""
    if run.status != Status.QUEUED:
        return None
    return next((one for one in queue() if one.run.pk == run.pk), None)


def _queued() -> QuerySet[Run]:
    waiting = Run.objects.filter(status=Status.QUEUED, deleted=None).select_related("node", "created_by", "team")
    return waiting.annotate(age=Coalesce("turn", "queued")).order_by("-priority", "age", "pk")


def _play(waiting: list[Run], takers: list[Node]) -> list[Start]:
    live = list(Attempt.objects.live().exclude(node=None).select_related("run"))
    left = remaining(live)
    at_work = [Work(one.run.team_id, one.node_id or 0, one.devices, left[one.run_id]) for one in live]
    active = Counter(Run.objects.filter(status__in=ACTIVE).values_list("team", flat=True))
    return Play(takers, at_work, [*waiting], lengths(waiting), active).starts()


def _able(run: Run, nodes: list[Node]) -> list[Node]:
    """Nodes that could take the run if they were there and free."""
    return [node for node in nodes if node.carries(run.node) and fits(run, node)]


def _waiting(run: Run, place: int, start: Start | None, able: list[Node], takers: list[Node]) -> Waiting:
    if start is not None:
        names = ", ".join(node.name for node in able if node in takers)
        free = start.seconds == 0
        why = "A node takes it within seconds." if free else f"Devices are busy on {names}."
        return Waiting(run, place, True, start.seconds, why)
    return Waiting(run, place, False, None, _hindrance(run, able, takers))


def _hindrance(run: Run, able: list[Node], takers: list[Node]) -> str:
    """Say why no node takes the run as things are."""
    if run.node is not None and not any(node.carries(run.node) for node in takers):
        return whereabouts(run)
    if not takers:
        return "No node takes runs just now: start one, or resume a paused one."
    if not able:
        return "No node has the devices that it asks for."
    states = ", ".join(f"{node.name} is {node.says}" for node in able)
    return f"No node that is there has the devices that it asks for: {states}."

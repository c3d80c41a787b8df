"""Continue a run that has ended, from its last checkpoint, as the next attempt."""

from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from vantage.nodes.models import Node
from vantage.runs.announce import announce
from vantage.runs.folder import STEPS
from vantage.runs.models import Attempt, Checkpoint, Run
from vantage.runs.silence import lose_silent, silent
from vantage.runs.states import ACTIVE, TRANSITIONS, Status
from vantage.runs.tasks import nudge_nodes


@dataclass(frozen=True)
class Prospect:
    """What resuming a run would do."""

    checkpoint: Checkpoint
    sentence: str


def is_resumable(run: Run) -> bool:
    """Whether the run has come to an end that a person may undo, or stands on a node that is gone."""
    return run.status in TRANSITIONS["resume"][0] or silent().filter(run=run).exists()


def last_checkpoint(run: Run) -> Checkpoint | None:
    """Return the checkpoint furthest on; folders sort in the order of a run."""
    return run.checkpoints.filter(pruned=None).order_by("-folder", "-attempt").first()


def prospect(run: Run) -> Prospect | None:
    """Tell what resuming would do; None: there is nothing to go on from."""
    checkpoint = last_checkpoint(run)
    if checkpoint is None or run.node is None or not is_resumable(run):
        return None
    return Prospect(checkpoint, _sentence(run.node, checkpoint, run.attempt + 1))


def resume(run: Run) -> bool:
    """Queue the run again from its last checkpoint; False: it has none, or it waits or works already."""
    lose_silent([run.pk])
    if last_checkpoint(run) is None or run.node is None:
        return False
    fresh = {"queued": Now(), "turn": None, "ended": None, "code": "", "sentence": ""}
    fresh |= {"num_lost": 0, "stopped_by": None}
    with transaction.atomic():
        if not Run.objects.filter(pk=run.pk, deleted=None).move("resume", **fresh):
            return False
        Attempt.objects.filter(run=run).abandon()
        transaction.on_commit(nudge_nodes)
        transaction.on_commit(lambda: announce(run.pk, run.team_id))
    return True


def carriers(node: Node) -> list[str]:
    """Name the living nodes that hold what lies in this one's folders: itself and those that share its storage."""
    sharing = Q(pk=node.pk) | (Q(storage=node.storage) & ~Q(storage=""))
    there = Node.objects.alive().filter(sharing, draining=False, paused=False)
    return list(there.order_by("name").values_list("name", flat=True))


def absence(node: Node) -> str:
    """Say why a node takes no runs just now; empty: it does, or one that shares its storage does."""
    if carriers(node):
        return ""
    if node.removed:
        return "was removed"
    if node.silent or node.draining:
        return f"has been silent since {node.heartbeat:%Y-%m-%d %H:%M} UTC"
    return "is paused"


def whereabouts(run: Run) -> str:
    """Say what keeps the node that a run works on, or has to go on at, from doing so; empty: nothing."""
    if run.node is None:
        return ""
    if run.status == Status.QUEUED and (why := absence(run.node)):
        return f"It waits for node {run.node.name}, which holds its folder and {why}."
    if run.status in ACTIVE and run.node.silent:
        return f"Its node {run.node.name} has been silent since {run.node.heartbeat:%Y-%m-%d %H:%M} UTC."
    return ""


def _sentence(node: Node, checkpoint: Checkpoint, attempt: int) -> str:
    at = f"step {checkpoint.step}" + ("" if STEPS in checkpoint.folder else " of the warm start")
    if why := absence(node):
        return (
            f"Its folder lies on node {node.name}, which {why}: it goes on from {at} once that node takes runs again."
        )
    return f"It goes on from {at} on node {' or '.join(carriers(node))}, as attempt {attempt}."

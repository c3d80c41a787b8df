"""Nodes that do not come back: their runs are shown as lost, and go on by themselves should the node return."""

from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from vantage.nodes.models import Node
from vantage.runs.announce import announce
from vantage.runs.models import Attempt, Run
from vantage.runs.querysets import AttemptQuerySet
from vantage.runs.states import ACTIVE

SILENT_LEASES = 10  # lease times without a sign of supervisor and node, then the run counts as lost
CODE = "node_silent"


def silent() -> AttemptQuerySet:
    """Attempts whose lease expired long ago on a node whose heart has stopped as long."""
    long_ago = Now() - timedelta(seconds=SILENT_LEASES * settings.LEASE_SECONDS)
    gone = Q(node=None) | Q(node__heartbeat__lt=long_ago)
    return Attempt.objects.newest().filter(gone, lease_until__lt=long_ago, run__status__in=ACTIVE)


def lose_silent(runs: list[int] | None = None) -> int:
    """Call the silent nodes' runs lost; their attempts live on, in case the node was only cut off."""
    found = silent() if runs is None else silent().filter(run__in=runs)
    return sum(_lose(attempt) for attempt in found.select_related("run", "node"))


def lose_runs_of(node: Node) -> int:
    """Call the runs of a removed node lost, however short it has been silent; should it start again, they go on."""
    live = Attempt.objects.newest().filter(node=node, run__status__in=ACTIVE)
    return sum(_lose(attempt) for attempt in live.select_related("run", "node"))


def _lose(attempt: Attempt) -> bool:
    run = Run.objects.filter(pk=attempt.run_id, attempt=attempt.number)
    told = {"code": CODE, "sentence": _sentence(attempt)}
    with transaction.atomic():
        lost = run.move("silence", **told)
        stopped = 0 if lost else run.move("lose_stopping", ended=Now(), **told)
        if stopped:
            Attempt.objects.filter(pk=attempt.pk).abandon()
    announce(attempt.run_id, attempt.run.team_id)
    return bool(lost or stopped)


def _sentence(attempt: Attempt) -> str:
    if attempt.node is None:
        return "Its node is no longer known."
    if attempt.node.removed:
        return f"Its node {attempt.node.name} was removed while it worked there."
    since = f"{attempt.node.heartbeat:%Y-%m-%d %H:%M} UTC"
    return f"Its node {attempt.node.name} has been silent since {since}."

"""What a node's agent makes good every few seconds: lost messages, dead supervisors, stalled ones."""

import logging
import signal
import subprocess
from datetime import timedelta

from django.utils import timezone

from vantage.nodes.models import Node
from vantage.runs.dispatch import start_supervisor, take_runs
from vantage.runs.folder import RunFolder, holder, is_held
from vantage.runs.models import Attempt
from vantage.runs.silence import lose_silent

STARTING = timedelta(seconds=30)  # what a first supervisor may take from the claim to its first sign of life
Started = dict[int, subprocess.Popen[bytes]]  # by attempt: the supervisors that this agent has started
logger = logging.getLogger("vantage.node")


def sweep(node: Node, started: Started, *, leases_count: bool) -> None:
    """Look after this node's attempts and take what waits. Right after Postgres was away leases say nothing yet."""
    live = Attempt.objects.live().filter(node=node).select_related("run")
    for attempt in live.exclude(supervisor="", created__gt=timezone.now() - STARTING):
        _replace_dead(attempt, started)
    if leases_count:
        for attempt in live.expired():
            _end_stalled(attempt, node)
        lose_silent()
    if Node.objects.filter(pk=node.pk, paused=True, sends_back=True).exists():
        for attempt in live:
            _send_back(attempt, node)
    for attempt, supervisor in take_runs(node):
        started[attempt.pk] = supervisor


def _replace_dead(attempt: Attempt, started: Started) -> None:
    """Start a new supervisor for one that is gone: it adopts the living trainer, or records how it ended."""
    earlier = started.get(attempt.pk)
    on_its_way = earlier is not None and earlier.poll() is None
    if not on_its_way and not is_held(RunFolder.of(attempt.run_id).supervisor_lock):
        logger.warning("%s has no supervisor: a new one takes over.", attempt)
        started[attempt.pk] = start_supervisor(attempt)


def _end_stalled(attempt: Attempt, node: Node) -> None:
    """End a supervisor that has let its lease expire though Postgres is there; the next sweep replaces it."""
    stalled = holder(RunFolder.of(attempt.run_id).supervisor_lock, node.name)
    if stalled:
        logger.warning("The supervisor of %s has stalled and is ended.", attempt)
        stalled.send(signal.SIGKILL)


def _send_back(attempt: Attempt, node: Node) -> None:
    """Let a run write a checkpoint and go back into the queue, as when its node leaves."""
    supervisor = holder(RunFolder.of(attempt.run_id).supervisor_lock, node.name)
    if supervisor:
        supervisor.send(signal.SIGTERM)

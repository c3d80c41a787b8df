"""Take waiting runs for a node and start a supervisor for each; done by the nudge's task and by the sweep alike."""

import logging
import subprocess
import sys

from django.conf import settings
from django.db import IntegrityError

from vantage.nodes.models import Node
from vantage.runs.folder import RunFolder
from vantage.runs.models import Attempt, Run
from vantage.runs.querysets import fits, needs_devices
from vantage.runs.states import Status

logger = logging.getLogger("vantage.node")


def take_runs(node: Node) -> list[tuple[Attempt, subprocess.Popen[bytes]]]:
    """Claim what fits, in the queue's order, which each claim changes: a team with one run more at work steps back."""
    taken: list[tuple[Attempt, subprocess.Popen[bytes]]] = []
    while attempt := _take_next(node):
        taken.append((attempt, start_supervisor(attempt)))
    return taken


def _take_next(node: Node) -> Attempt | None:
    """Claim the first that fits; one that has to wait for devices keeps those behind it waiting that need some too."""
    if not Node.objects.filter(pk=node.pk, removed=None, paused=False, draining=False).exists():
        return None
    crowded = False
    for run in Run.objects.waiting_for(node):
        try:
            if not fits(run, node) or (crowded and needs_devices(run)):
                continue  # another node's, or its turn comes later
            attempt = Run.objects.claim(run.pk, node)
        except (IntegrityError, ValueError):  # one broken run must not hold up the queue
            logger.exception("Run %s cannot be claimed.", run.pk)
            continue
        if attempt:
            return attempt
        crowded |= needs_devices(run) and Run.objects.filter(pk=run.pk, status=Status.QUEUED).exists()
    return None


def start_supervisor(attempt: Attempt) -> subprocess.Popen[bytes]:
    """Start a supervisor in a session of its own, so that it outlives whoever started it; a second one ends at once."""
    folder = RunFolder.of(attempt.run_id).attempt(attempt.number).path
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-P", "-m", "vantage.runs.supervise", str(attempt.pk)]
    with (folder / "supervisor.log").open("ab") as log:
        return subprocess.Popen(
            command, cwd=settings.HOME, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )

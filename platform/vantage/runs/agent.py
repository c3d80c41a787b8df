"""`vantage node`: the Celery worker of a node, its heartbeat and its sweep; on SIGTERM its runs drain."""

import ctypes
import logging
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

from django.conf import settings
from django.db import InterfaceError, InternalError, OperationalError, connection
from django.utils import timezone

from vantage.nodes.devices import Choice
from vantage.nodes.history import History
from vantage.nodes.models import Node
from vantage.nodes.registration import register
from vantage.nodes.usage import Gauge
from vantage.processes import Process, reap
from vantage.runs.folder import held, holder
from vantage.runs.gone import note_gone
from vantage.runs.sweep import Started, sweep
from vantage.runs.tasks import queue_of

BEAT_SECONDS = 5.0
DRAIN_SECONDS = 28.0  # `vantage up` gives 30 in all
CELERY_AGAIN = 2.0  # seconds until a dead Celery worker is started again
DEATH_SIGNAL = 1  # prctl's PR_SET_PDEATHSIG
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
EVERYTHING = Choice()
logger = logging.getLogger("vantage.node")


def main(name: str | None, choice: Choice = EVERYTHING) -> int:
    """Serve until SIGTERM; ValueError says why this name cannot be taken, or these devices not given out."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    chosen = name or socket.gethostname()
    if not NAME.fullmatch(chosen):
        raise ValueError(f"{chosen} is no node name: use letters, digits, dots, dashes and underscores, 64 at most.")
    with held(lock_of(chosen)) as lock:
        if lock is None:
            raise ValueError(f"A node named {chosen} runs here already; choose another name with --name.")
        Agent(chosen, choice).serve()
    return 0


def lock_of(name: str) -> Path:
    """Held while the node runs, touched at each heartbeat: by its age a container's health check judges."""
    return Path(settings.HOME) / "nodes" / f"{name}.lock"


class Agent:
    def __init__(self, name: str, choice: Choice) -> None:
        self.name = name
        self.choice = choice
        self.history = History(Gauge(Path(settings.HOME)))
        self.node: Node | None = None
        self.celery: subprocess.Popen[bytes] | None = None
        self.celery_due = 0.0
        self.started: Started = {}
        self.leaving = 0  # signals received
        self.beat_due = 0.0
        self.sweep_due = 0.0
        self.leases_count_from = time.monotonic() + settings.LEASE_SECONDS
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._leave)

    def _leave(self, number: int, frame: FrameType | None) -> None:
        self.leaving += 1

    def serve(self) -> None:
        while not self.leaving:
            self._keep_celery()
            try:
                self._work()
            except (OperationalError, InterfaceError, InternalError) as error:
                logger.warning("Postgres is away: %s", str(error).strip().partition("\n")[0])
                connection.close()
                self.leases_count_from = time.monotonic() + settings.LEASE_SECONDS
                time.sleep(1)
            reap([*self.started.values(), *([self.celery] if self.celery else [])])
            time.sleep(0.2)
        self._drain()

    def _work(self) -> None:
        self.node = self.node or self._register()
        now = time.monotonic()
        if now >= self.beat_due:
            self.beat_due = now + BEAT_SECONDS
            there = Node.objects.filter(pk=self.node.pk, removed=None)
            if not there.update(heartbeat=timezone.now(), **self.history.fresh()):
                logger.warning("The node was removed on the site and leaves; started again, it is back.")
                self.leaving += 1
            lock_of(self.name).touch()
        if now >= self.sweep_due:
            self.sweep_due = now + settings.SWEEP_SECONDS
            sweep(self.node, self.started, leases_count=now >= self.leases_count_from)

    def _register(self) -> Node:
        node, earlier = register(self.name, self.choice)
        note_gone(node, earlier)
        self.history.begin(node.history)
        return node

    def _keep_celery(self) -> None:
        """Start the worker, and start it again when it has died; the sweep does its work meanwhile."""
        if (self.celery and self.celery.poll() is None) or time.monotonic() < self.celery_due:
            return
        self.celery_due = time.monotonic() + CELERY_AGAIN
        quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "WARNING"]
        worker = ["worker", "--pool", "solo", "--queues", queue_of(self.name), "--hostname", f"{self.name}@%h", *quiet]
        command = [sys.executable, "-P", "-m", "celery", "--app", "vantage.celery", *worker]
        self.celery = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=_die_with_parent)

    def _drain(self) -> None:
        """Take nothing new, let the supervisors checkpoint and requeue their runs; a second signal ends the wait."""
        if self.celery:
            self.celery.terminate()
        self._say_draining()
        for supervisor in self._supervisors():
            supervisor.send(signal.SIGTERM)
        end = time.monotonic() + DRAIN_SECONDS
        while self._supervisors() and time.monotonic() < end and self.leaving < 2:
            time.sleep(0.1)
        if self.celery:
            self.celery.kill()
            self.celery.wait()

    def _say_draining(self) -> None:
        try:
            Node.objects.filter(name=self.name).update(draining=True)
        except (OperationalError, InterfaceError):
            logger.warning("Postgres is away: the node leaves without saying so.")

    def _supervisors(self) -> list[Process]:
        """Ask the run folders, not Postgres: it may be away."""
        locks = (Path(settings.HOME) / "runs").glob("*/supervisor.lock")
        return [process for lock in locks if (process := holder(lock, self.name))]


def _die_with_parent() -> None:
    """Let a killed agent take its worker with it."""
    ctypes.CDLL(None).prctl(DEATH_SIGNAL, signal.SIGTERM)

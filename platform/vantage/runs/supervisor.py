"""One supervisor stands by one attempt: it starts or adopts the trainer, ships its journal and records its end."""

import logging
import os
import signal
import socket
import time
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

import psycopg
from django.conf import settings
from django.db import InterfaceError, InternalError, OperationalError, connection
from django.db.models.functions import Now
from psycopg.errors import IdleInTransactionSessionTimeout

from vantage.datasets.models import DatasetVersion
from vantage.nodes.usage import Gauge
from vantage.runs.ending import Ending, read_ending, record_end
from vantage.runs.folder import RunFolder, held, sign
from vantage.runs.ingest import Fenced, Shipper
from vantage.runs.models import Attempt, Checkpoint, Run
from vantage.runs.node_rows import NodeRows
from vantage.runs.placement import cores_of
from vantage.runs.prepare import begin, write_folder
from vantage.runs.protecting import protect
from vantage.runs.states import Kind, Outcome, Status
from vantage.runs.trainer_process import TrainerProcess

TICK = 0.25  # seconds between two looks at the journal
PROTECT_SECONDS = 1.0  # between two looks at who waits for a checkpoint
AWAY_SECONDS = 1.0  # until Postgres is asked again
TERM_AFTER = {"stop": 30.0, "drain": 5.0}  # seconds from asking to SIGTERM
KILL_AFTER = {"stop": 300.0, "drain": 25.0}  # and to SIGKILL: a drain has 30 s in all
STOOD_STILL = (InternalError, IdleInTransactionSessionTimeout)  # amid a transaction, so that Postgres has let it go
AWAY = (OperationalError, InterfaceError, psycopg.OperationalError, *STOOD_STILL)  # COPY's come as psycopg's own
logger = logging.getLogger("vantage.supervisor")
T = TypeVar("T")


def supervise(attempt_pk: int) -> None:
    """Stand by until the attempt has ended; at once when another supervisor already does."""
    attempt = patiently(lambda: Attempt.objects.select_related("run", "node").get(pk=attempt_pk))
    folder = RunFolder.of(attempt.run_id)
    with held(folder.supervisor_lock) as lock:
        if lock is None:
            return
        sign(lock, attempt.node.name if attempt.node else "")
        Supervisor(attempt, folder).stand_by()


def patiently(ask: Callable[[], T]) -> T:
    """Ask Postgres until it answers."""
    while True:
        try:
            return ask()
        except AWAY as error:
            _leave(error)
            time.sleep(AWAY_SECONDS)


def _leave(error: Exception) -> None:
    logger.warning("Postgres is away: %s", str(error).strip().partition("\n")[0])
    connection.close()


def program(kind: str) -> tuple[str, bool]:
    """Name the module that does this kind of work, and say whether it may reach the services."""
    if kind == Kind.IMPORT:
        return settings.IMPORT_MODULE, True  # it runs nobody else's code
    return settings.TRAINER_MODULE if kind == Kind.TRAIN else settings.JOB_MODULE, False


class Supervisor:
    def __init__(self, attempt: Attempt, folder: RunFolder) -> None:
        self.attempt = attempt
        self.folder = folder
        self.trainer = TrainerProcess(folder, attempt.number, *program(attempt.run.kind))
        self.shipper = Shipper(attempt, folder.attempt(attempt.number))
        self.gauge = Gauge(folder.path)
        self.node_rows = NodeRows(attempt, self.gauge)
        self.name = f"{socket.gethostname()}:{os.getpid()}"[:100]
        self.draining = False
        self.asked: str = ""  # what the trainer was asked: stop or drain
        self.asked_at = 0.0
        self.renewed = 0.0
        self.away_until = 0.0
        self.kept: set[str] = set()  # checkpoints
        self.protected = 0.0
        signal.signal(signal.SIGTERM, self._drain)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is for who started us

    def stand_by(self) -> None:
        try:
            patiently(self._renew)
            if not self._start():
                return
            self.gauge.start()
            while self.trainer.alive():
                self._tick()
                time.sleep(TICK)
            self._finish()
        except Fenced:
            logger.warning("Attempt %s is over or fenced off: its trainer ends.", self.attempt)
            self.trainer.end_rest()

    def _drain(self, number: int, frame: FrameType | None) -> None:
        self.draining = True

    def _start(self) -> bool:
        """Adopt this attempt's trainer, living or ended, else start one; False: the attempt ended before that."""
        if self.trainer.was_started:
            logger.info("Adopting the trainer of %s.", self.attempt)
            return True
        self.trainer.end_rest()  # what an earlier attempt may have left
        patiently(self._ship_earlier)
        if self.draining or patiently(self._is_stopping):
            self._record(Ending(Outcome.DRAINED, "before_start", "It was stopped before it began."))
            return False
        try:
            patiently(lambda: write_folder(self.attempt.run, self.folder))
            patiently(lambda: begin(self.attempt))
            self.trainer.start(self.attempt.devices, self._cores())
        except (OSError, DatasetVersion.DoesNotExist) as error:
            self.trainer.end_rest()  # it may have begun: who it is could not be written down
            self._record(Ending(Outcome.FAILED, "folder_not_written", f"The run folder could not be written: {error}"))
            return False
        return True

    def _cores(self) -> set[int]:
        return cores_of(self.attempt.devices, self.attempt.node.devices) if self.attempt.node else set()

    def _ship_earlier(self) -> None:
        """Store what attempts wrote after they were fenced off: this one may go on from their checkpoints."""
        earlier = Attempt.objects.filter(run=self.attempt.run_id, number__lt=self.attempt.number)
        for attempt in earlier.select_related("run").order_by("number"):
            shipper = Shipper(attempt, self.folder.attempt(attempt.number), holder=self.attempt)
            while shipper.ship():
                pass

    def _is_stopping(self) -> bool:
        return Run.objects.filter(pk=self.attempt.run_id, status=Status.STOPPING).exists()

    def _tick(self) -> None:
        """Do what is due; while Postgres is away the trainer goes on and its journal waits."""
        self._press()
        if time.monotonic() < self.away_until:
            return
        try:
            self._look()
        except AWAY as error:
            _leave(error)
            self.away_until = time.monotonic() + AWAY_SECONDS

    def _look(self) -> None:
        if time.monotonic() - self.renewed > settings.LEASE_SECONDS / 3:
            self._renew()
        while self.shipper.ship():
            pass
        self.node_rows.ship()
        self._mark_pruned()
        self._protect()
        if not self.asked and self._is_stopping():
            self._ask("stop")

    def _mark_pruned(self) -> None:
        """Say of checkpoints that the trainer has pruned that they are gone."""
        found = self.folder.checkpoints()
        if found != self.kept:
            kept = Checkpoint.objects.filter(run=self.attempt.run_id, pruned=None)
            kept.exclude(folder__in=found).update(pruned=Now())
            self.kept = found

    def _protect(self) -> None:
        if time.monotonic() - self.protected < PROTECT_SECONDS:
            return
        self.protected = time.monotonic()
        try:
            protect(self.attempt.run_id, self.folder)
        except OSError as error:  # a full disk ends the trainer with a sentence of its own
            logger.warning("Who waits for a checkpoint could not be written down: %s", error)

    def _renew(self) -> None:
        if not Attempt.objects.renew(self.attempt.pk, self.name):
            raise Fenced
        self.renewed = time.monotonic()

    def _ask(self, word: str) -> None:
        self.asked, self.asked_at = word, time.monotonic()
        self.trainer.ask(word)

    def _press(self) -> None:
        """Ask, then urge, then kill: a trainer that was told to end does end."""
        if self.draining and self.asked != "drain":
            self._ask("drain")
        if not self.asked:
            return
        waited = time.monotonic() - self.asked_at
        if waited > KILL_AFTER[self.asked]:
            self.trainer.end_rest()
        elif waited > TERM_AFTER[self.asked]:
            self.trainer.terminate()

    def _finish(self) -> None:
        """Ship the rest and record the end, however long Postgres takes to come back."""
        self.trainer.end_rest()
        while patiently(self.shipper.ship):
            pass
        patiently(self._mark_pruned)
        stopping = patiently(self._is_stopping)
        folder = self.folder.attempt(self.attempt.number)
        self._record(read_ending(folder, self.trainer.exit_code, stopping=stopping, draining=self.draining))

    def _record(self, ending: Ending) -> None:
        logger.info("%s: %s %s", self.attempt, ending.outcome, ending.sentence)
        patiently(lambda: record_end(self.attempt, ending))

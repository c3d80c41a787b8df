"""One cell of the matrix: kill one process in one phase, see the run go on, and hold it against what must be true."""

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from django.db import InterfaceError, OperationalError, connection
from kill_recipe import EVERY_MINUTES, EVERY_STEPS, queue
from moments import now, wait_for
from run_facts import Repeat, faults, newest_time, processes_of, repeated, resumption, too_much
from vantage.processes import Process
from vantage.runs.folder import RunFolder
from vantage.runs.models import Checkpoint, Run
from vantage.runs.states import OVER, Status
from victims import VICTIMS, Place, Victim
from whole_site import Site

PHASE_SECONDS = 400.0  # until the phase comes round
RECOVERY_SECONDS = 300.0
END_SECONDS = 90.0
POLL_SECONDS = 0.1
T = TypeVar("T")


class Fault(Exception):
    """It did not come to what had to come."""


@dataclass
class Outcome:
    """What a cell showed; without faults it passed."""

    victim: str
    phase: str
    words: str = ""
    step: int | None = None
    repeated: str = ""
    back: float | None = None  # seconds from the kill until somebody stood in the victim's place and answered
    recovery: float | None = None  # and until what the trainer did after the kill had reached Postgres too
    faults: list[str] = field(default_factory=list)


def patient(ask: Callable[[], T], seconds: float = 60) -> T:
    """Ask Postgres, which may just have been killed."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return ask()
        except (OperationalError, InterfaceError):
            connection.close()
            if time.monotonic() > deadline:
                raise
            time.sleep(POLL_SECONDS)


def until(reached: Callable[[], object], what: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not patient(reached):
        if time.monotonic() > deadline:
            raise Fault(f"{what} within {seconds:.0f} s.")
        time.sleep(POLL_SECONDS)


class Target:
    """A run under fire."""

    def __init__(self, site: Site, name: str) -> None:
        self.site = site
        self.pk = patient(lambda: queue(name)).pk
        self.folder = RunFolder.of(self.pk).path

    def run(self) -> Run:
        return patient(lambda: Run.objects.get(pk=self.pk))

    def place(self, attempt: int = 0) -> Place:
        return Place(self.site, self.folder, attempt)

    def suffer(self, victim: Victim, phase: str) -> Outcome:
        """Kill once; whatever goes wrong is told in the outcome."""
        outcome = Outcome(victim.name, phase)
        try:
            self._suffer(victim, phase, outcome)
        except Fault as fault:
            outcome.faults.append(f"{fault} {self.standing()}")
        return outcome

    def _suffer(self, victim: Victim, phase: str, outcome: Outcome) -> None:
        self.await_ready(victim.costs_attempt)
        attempt = self.run().attempt
        process = self.find(victim, attempt)
        if not wait_for(self.folder, attempt, phase, PHASE_SECONDS):
            raise Fault(f"The phase did not come within {PHASE_SECONDS:.0f} s.")
        process.send(signal.SIGKILL)
        killed = time.time()
        moment = now(self.folder)
        outcome.step = moment.step if moment else None
        if victim.name == "vantage up":
            self.site.start()
        self._await_recovery(victim, attempt, process, killed, outcome)
        outcome.words = patient(lambda: resumption(self.run())) if victim.costs_attempt else "same attempt went on"
        self.judge(attempt, outcome, costs_attempt=victim.costs_attempt)

    def await_ready(self, needs_checkpoint: bool) -> None:
        """Wait until it trains; before what costs the attempt until it has a checkpoint since the last loss, too."""
        until(lambda: self._is_ready(needs_checkpoint), "The run did not come to a checkpoint", RECOVERY_SECONDS)

    def _is_ready(self, needs_checkpoint: bool) -> bool:
        run = Run.objects.get(pk=self.pk)
        if run.status in OVER:
            raise Fault("The run has ended.")
        is_safe = run.num_lost == 0 and Checkpoint.objects.filter(run=run, attempt=run.attempt).exists()
        return run.status == Status.RUNNING and (is_safe or not needs_checkpoint)

    def find(self, victim: Victim, attempt: int) -> Process:
        found: list[Process] = []

        def look() -> bool:
            process = victim.find(self.place(attempt))
            found.extend([process] if process else [])
            return bool(process)

        until(look, f"No {victim.name} was found", RECOVERY_SECONDS)
        return found[0]

    def _await_recovery(self, victim: Victim, attempt: int, killed_one: Process, at: float, outcome: Outcome) -> None:
        """Wait until another stands in the place of the killed one and the run is seen to go on."""
        next_attempt = attempt + victim.costs_attempt

        def is_back() -> bool:
            process = None if outcome.back else victim.find(self.place(next_attempt))
            if process and process != killed_one and victim.answers(self.site, process):
                outcome.back = time.time() - at
            return outcome.back is not None

        def goes_on() -> bool:
            if Run.objects.get(pk=self.pk).status in OVER:
                raise Fault("The run has ended.")
            return is_back() and newest_time(Run(pk=self.pk), next_attempt) > at

        until(goes_on, "The run did not go on", RECOVERY_SECONDS)
        outcome.recovery = time.time() - at

    def judge(self, before: int, outcome: Outcome, *, costs_attempt: bool) -> None:
        """Add to the outcome what is wrong with the run after it, seen from the attempt before."""
        run = self.run()
        found = patient(lambda: repeated(run, before)) if costs_attempt else Repeat()
        outcome.repeated = str(found)
        outcome.faults += too_much(found, EVERY_STEPS, EVERY_MINUTES * 60)
        outcome.faults += patient(lambda: faults(run))
        if run.attempt != before + costs_attempt:
            outcome.faults.append(f"It is at attempt {run.attempt} after {before}. {self.standing()}")

    def stop(self) -> list[str]:
        """Let the run end as a person does; returns what is wrong with its end."""
        try:
            until(lambda: Run.objects.filter(pk=self.pk).move("ask_stop"), "The run could not be stopped", END_SECONDS)
            until(lambda: self.run().status == Status.STOPPED, "The run did not stop", END_SECONDS)
        except Fault as fault:
            return [f"{fault} {self.standing()}"]
        run = self.run()
        wrong = patient(lambda: faults(run))
        kept = patient(lambda: list(Checkpoint.objects.filter(run=run, pruned=None).values_list("step", flat=True)))
        if not any(f"step {step} and can be resumed" in run.sentence for step in kept):
            wrong.append(f"Its last checkpoints are {kept}, but: {run.sentence}")
        if not run.sentence:
            wrong.append("It stopped without a sentence.")
        if left := processes_of(self.folder):
            wrong.append(f"Processes {left} were left behind.")
        return wrong

    def standing(self) -> str:
        run = self.run()
        ends = patient(lambda: list(run.attempts.order_by("number").values_list("number", "outcome", "sentence")))
        told = "; ".join(
            f"attempt {number} {outcome or 'lives'}: {sentence}" for number, outcome, sentence in ends[-2:]
        )
        return f"The run is {run.status}: {run.sentence} ({told})"


def walk(site: Site, name: str, cells: list[tuple[str, str]], tell: Callable[[Outcome], None]) -> list[Outcome]:
    """Walk through cells on one run, on a fresh one after a cell that failed; then let it end."""
    found: list[Outcome] = []
    target: Target | None = None
    for victim, phase in cells:
        target = target or Target(site, name)
        outcome = target.suffer(VICTIMS[victim], phase)
        found.append(outcome)
        tell(outcome)
        if outcome.faults:
            target.stop()
            target = None
    return found + ([told_end(target, name, tell)] if target else [])


def told_end(target: Target, name: str, tell: Callable[[Outcome], None]) -> Outcome:
    """Let a run end as a person does, and tell how that went."""
    end = Outcome(f"({name})", "asked to stop", words="stopped at a checkpoint, nothing left", faults=target.stop())
    tell(end)
    return end

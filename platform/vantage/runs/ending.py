"""How an attempt ends and what that makes of its run: one transaction, which a fenced writer cannot make."""

import json
import re
import signal
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from vantage.runs.announce import announce
from vantage.runs.folder import AttemptFolder
from vantage.runs.ingest import log_tail
from vantage.runs.models import Attempt, Run
from vantage.runs.states import Kind, Outcome, Status
from vantage.runs.tasks import nudge_nodes
from vantage.text import storable

MOST_LOST = 3  # attempts lost in a row without a checkpoint between them, then the run fails
INSTEAD = {"drain": "stop", "lose": "lose_stopping"}  # where a person asked to stop meanwhile
TRANSITION = {Outcome.SUCCEEDED: "succeed", Outcome.FAILED: "fail", Outcome.STOPPED: "stop"}
TRANSITION |= {Outcome.DRAINED: "drain", Outcome.LOST: "lose"}
INFRASTRUCTURE = (
    "generator_died",
    "postgres_away",
)  # codes of a failure that another attempt may not meet: as a lost trainer's
GOES_ON = "; the run goes on from its last checkpoint"  # untrue where it does not
BEGINS_ANEW = "; the job starts again"
_NOISE = re.compile(r"^\s|^\s*$|^Traceback|%\|")  # indented lines of a stack trace, empty lines, progress bars


@dataclass(frozen=True)
class Ending:
    outcome: str  # of Outcome
    code: str = ""
    sentence: str = ""


def read_ending(folder: AttemptFolder, exit_code: int | None, *, stopping: bool, draining: bool) -> Ending:
    """Tell how the trainer ended: by its own report, or by what its death looks like."""
    asked = Outcome.STOPPED if stopping else Outcome.DRAINED
    told = _report(folder)
    if told is not None:
        code = storable(str(told.get("code", "")))[:40]
        outcome = asked if told["outcome"] == "stopped" else Outcome(told["outcome"])
        if outcome == Outcome.FAILED and code in INFRASTRUCTURE:
            outcome = Outcome.LOST
        return Ending(outcome, code, str(told.get("sentence", "")))
    if stopping or draining:
        return Ending(
            asked, "ended_hard", "The trainer did not end in time and was killed; its last checkpoint counts."
        )
    if exit_code is not None and exit_code > 0:
        return Ending(Outcome.FAILED, "trainer_error", _death(folder, f"with exit code {exit_code}"))
    return Ending(Outcome.LOST, "trainer_lost", _death(folder, _signal(exit_code)))


def record_end(attempt: Attempt, ending: Ending) -> bool:
    """Write the end of an attempt and move its run on; False: someone else ended it before, nothing was changed."""
    with transaction.atomic():
        run = Run.objects.select_for_update().get(pk=attempt.run_id)
        if run.attempt != attempt.number:
            return False
        said = ending.sentence if run.kind == Kind.TRAIN else ending.sentence.replace(GOES_ON, BEGINS_ANEW)
        told = {"code": ending.code, "sentence": said}
        if not Attempt.objects.live().filter(pk=attempt.pk).update(outcome=ending.outcome, ended=Now(), **told):
            return False
        if run.status == Status.LOST:  # its node was silent for long, but the attempt lived on
            Run.objects.filter(pk=run.pk).find()
        name = TRANSITION[ending.outcome]
        if run.status == Status.STOPPING:
            told["sentence"] = _without_promise(said)
            name = INSTEAD.get(name, name)
        Run.objects.filter(pk=run.pk).move(name, ended=None if name in INSTEAD else Now(), **told)
        if ending.outcome == Outcome.LOST:
            _retry(run, ending)
        transaction.on_commit(nudge_nodes)
        transaction.on_commit(lambda: announce(run.pk, run.team_id))
    return True


def _retry(run: Run, ending: Ending) -> None:
    chosen = Run.objects.filter(pk=run.pk)
    if run.num_lost < MOST_LOST:
        chosen.move("retry", num_lost=F("num_lost") + 1)
    else:
        between = " without reaching a checkpoint in between" if run.kind == Kind.TRAIN else ""
        times = f"It was lost {run.num_lost + 1} times{between}."
        chosen.move("give_up", ended=Now(), sentence=f"{times} {_without_promise(ending.sentence)}")


def _without_promise(sentence: str) -> str:
    return sentence.replace(GOES_ON, "").replace(BEGINS_ANEW, "")


def _report(folder: AttemptFolder) -> dict[str, str] | None:
    try:
        told = json.loads(folder.exit.read_text())
    except (OSError, ValueError, RecursionError):
        return None
    known = isinstance(told, dict) and told.get("outcome") in ("succeeded", "failed", "stopped")
    return told if known else None


def _death(folder: AttemptFolder, how: str) -> str:
    doing, last = _last_sign(folder), last_line(log_tail(folder))
    told = f"The trainer ended {how} and left no report."
    return told + (f" It was {doing}." if doing else "") + (f" Its log ends: {last}" if last else "")


def _last_sign(folder: AttemptFolder) -> str:
    """Say what the trainer did last, as far as it told."""
    try:
        told = json.loads(folder.now.read_text())
        return storable(f"at {told['phase'].replace('_', ' ')} after step {told['step']}")[:80]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return ""


def _signal(exit_code: int | None) -> str:
    if exit_code is None or exit_code >= 0:
        return "unobserved"
    known = {one.value: one.name for one in signal.Signals}  # most real-time signals have no name
    name = known.get(-exit_code, f"signal {-exit_code}")
    return f"by {name}" + (", as when memory runs out" if exit_code == -signal.SIGKILL else "")


def last_line(log: str) -> str:
    """Return the last line that says something: an error's last line rather than its stack."""
    lines = [line for line in log.splitlines() if not _NOISE.search(line)]
    return lines[-1][:300] if lines else ""

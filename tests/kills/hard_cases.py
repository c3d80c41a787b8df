"""What befalls a site besides kill -9: stalls, servers away, a full disk, doubled messages, half-written lines.

They play on a site with short leases; each says in words what was seen, or raises a Fault.
"""

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

import redis
from cell import RECOVERY_SECONDS, Fault, Outcome, Target, patient, until
from moments import now
from run_facts import newest_time, resumption
from vantage.embedded.valkey import Valkey
from vantage.processes import Process, inhabitants
from vantage.runs.folder import RunFolder
from vantage.runs.models import Run
from vantage.runs.resuming import resume
from vantage.runs.states import Outcome as End
from vantage.runs.states import Status
from vantage.runs.tasks import nudge, queue_of
from victims import VICTIMS, postgres, up

LEASE_SECONDS = 5.0
SWEEP_SECONDS = 1.0
AFTERMATH_SECONDS = 4.0  # for what was stopped and goes on to do harm, if it can


@dataclass(frozen=True)
class Case:
    """`act` returns what was seen; `costs_attempt` as of a victim."""

    name: str
    during: str
    act: Callable[[Target, Outcome], str]
    costs_attempt: bool = False


def undergo(target: Target, case: Case) -> Outcome:
    outcome = Outcome(case.name, case.during)
    try:
        target.await_ready(case.costs_attempt)
        before = target.run().attempt
        moment = now(target.folder)
        outcome.step = moment.step if moment else None
        outcome.words = case.act(target, outcome)
        target.judge(before, outcome, costs_attempt=case.costs_attempt)
    except Fault as fault:
        outcome.faults.append(f"{fault} {target.standing()}")
    return outcome


def stalled_supervisor(target: Target, outcome: Outcome) -> str:
    stalled = _stopped(target, "supervisor")
    began = time.time()
    until(lambda: _other(target, stalled), "The stalled supervisor was not replaced", RECOVERY_SECONDS)
    outcome.back = time.time() - began
    await_news(target, began, outcome)
    stalled.send(signal.SIGCONT)
    time.sleep(AFTERMATH_SECONDS)
    if stalled.alive():
        raise Fault("The stalled supervisor works on beside the new one.")
    return "ended and replaced, same attempt went on"


def cut_off_node(target: Target, outcome: Outcome) -> str:
    """Agent and supervisor stand still until their run is lost and resumed; then they wake."""
    attempt = target.run().attempt
    asleep = [_stopped(target, "node agent"), _stopped(target, "supervisor")]
    until(lambda: target.run().status == Status.LOST, "The silent node's run was not lost", RECOVERY_SECONDS)
    if not patient(lambda: resume(target.run())):
        raise Fault("The lost run could not be resumed.")
    woken = time.time()
    for process in asleep:
        process.send(signal.SIGCONT)
    until(lambda: not asleep[1].alive(), "The fenced supervisor did not end", RECOVERY_SECONDS)
    outcome.back = time.time() - woken
    await_news(target, woken, outcome, attempt + 1)
    ended = target.run().attempts.get(number=attempt)
    if ended.outcome != End.LOST:
        raise Fault(f"The fenced attempt ended as {ended.outcome}.")
    return f"lost, resumed by a person, the fenced supervisor ended its trainer; {resumption(target.run())}"


def postgres_away(target: Target, outcome: Outcome) -> str:
    place = target.place()
    watching, server = up(place), postgres(place)
    if not watching or not server:
        raise Fault("There is no Postgres to stop.")
    before = now(target.folder)
    watching.send(signal.SIGSTOP)  # else it would be started again at once
    server.send(signal.SIGKILL)
    time.sleep(3 * LEASE_SECONDS)
    after = now(target.folder)
    watching.send(signal.SIGCONT)
    return _went_on_meanwhile(target, outcome, before != after, time.time())


def postgres_hung(target: Target, outcome: Outcome) -> str:
    servers = inhabitants(target.site.home / "postgres" / "data", "postgres")
    before = now(target.folder)
    for process in servers:
        process.send(signal.SIGSTOP)
    time.sleep(3 * LEASE_SECONDS)
    after = now(target.folder)
    for process in servers:
        process.send(signal.SIGCONT)
    return _went_on_meanwhile(target, outcome, before != after, time.time())


def valkey_flushed(target: Target, outcome: Outcome) -> str:
    redis.Redis.from_url(Valkey(target.site.home).url).flushall()
    await_news(target, time.time(), outcome)
    return "same attempt went on"


def doubled_message(target: Target, outcome: Outcome) -> str:
    """The node hears of the queue again while it works."""
    node = patient(lambda: target.run().node)
    assert node is not None
    _nudge_twice(node.name)
    time.sleep(AFTERMATH_SECONDS)
    await_news(target, time.time(), outcome)
    return "nothing else began"


def claimed_once(target: Target, node: str) -> Outcome:
    """The node hears twice of a run that waits for it, and finds it by its sweep too."""
    outcome = Outcome("Celery", "message twice, run waits", words="one attempt, one supervisor, one trainer")
    _nudge_twice(node)
    try:
        until(lambda: target.run().status == Status.RUNNING, "The run did not begin", RECOVERY_SECONDS)
    except Fault as fault:
        outcome.faults.append(str(fault))
    time.sleep(AFTERMATH_SECONDS)
    if (count := patient(lambda: target.run().attempts.count())) != 1:
        outcome.faults.append(f"It was claimed {count} times.")
    return outcome


def _nudge_twice(node: str) -> None:
    for _ in range(2):
        nudge.apply_async([node], queue=queue_of(node))


def half_line(target: Target, outcome: Outcome) -> str:
    """A trainer dies amid a line of its journal."""
    attempt = target.run().attempt
    trainer = _stopped(target, "trainer")
    journal = RunFolder(target.folder).attempt(attempt).journal("metrics")
    with journal.open("a") as file:
        file.write('{"seq": 100000, "time": 1, "step": 99')
    time.sleep(1)
    trainer.send(signal.SIGKILL)
    killed = time.time()
    await_news(target, killed, outcome, attempt + 1)
    return f"the half line waited and was left out; {resumption(target.run())}"


CASES = (
    Case("supervisor", "stopped past its lease", stalled_supervisor),
    Case("Postgres", "away for three leases", postgres_away),
    Case("Postgres", "hangs for three leases", postgres_hung),
    Case("Valkey", "flushed", valkey_flushed),
    Case("Celery", "message twice, run at work", doubled_message),
    Case("trainer", "dies amid a line", half_line, costs_attempt=True),
    Case("agent, supervisor", "asleep for ten leases", cut_off_node, costs_attempt=True),
)


def _stopped(target: Target, name: str) -> Process:
    process = target.find(VICTIMS[name], target.run().attempt)
    process.send(signal.SIGSTOP)
    return process


def _other(target: Target, process: Process) -> bool:
    found = VICTIMS["supervisor"].find(target.place())
    return found is not None and found != process


def await_news(target: Target, since: float, outcome: Outcome, attempt: int = 0) -> None:
    def has_news() -> bool:
        return newest_time(Run(pk=target.pk), attempt) > since

    until(has_news, "The run did not go on", RECOVERY_SECONDS)
    outcome.recovery = time.time() - since


def _went_on_meanwhile(target: Target, outcome: Outcome, moved: bool, returned: float) -> str:
    if not moved:
        raise Fault("The trainer stood still while Postgres was away.")
    await_news(target, returned, outcome)
    return "the trainer went on meanwhile, same attempt"

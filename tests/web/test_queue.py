"""The queue: who goes first, what fits, and that a run is taken once."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from vantage.nodes.models import Node
from vantage.runs.ending import Ending, read_ending, record_end
from vantage.runs.folder import AttemptFolder
from vantage.runs.models import Attempt, Run
from vantage.runs.placement import num_needed, placed
from vantage.runs.prepare import begin, resumed
from vantage.runs.states import Outcome, Status
from vantage.runs.stopping import stop_run
from vantage.teams.models import Team
from vantage_trainer.spec import Resources

CPU = [{"id": "cpu0", "kind": "cpu"}]


def node(name: str = "n1", num: int = 1, **fields: object) -> Node:
    slots = [{"id": f"cpu{number}", "kind": "cpu"} for number in range(num)]
    return Node.objects.create(name=name, host="here", devices=slots, **fields)


def test_a_claim_writes_a_lease_and_is_made_once(make_run: Callable[..., Run]) -> None:
    run, here = make_run(), node(num=2)
    attempt = Run.objects.claim(run.pk, here)
    assert attempt and attempt.number == 1 and attempt.devices == ["cpu0"]
    attempt.refresh_from_db()
    assert timedelta(0) < attempt.lease_until - timezone.now() <= timedelta(seconds=30)
    assert Run.objects.claim(run.pk, here) is None
    run.refresh_from_db()
    assert (run.status, run.node, run.attempt) == (Status.STARTING, here, 1) and run.started


@pytest.mark.django_db(transaction=True)
def test_of_eight_nodes_that_claim_at_once_one_gets_the_run() -> None:
    team = Team.objects.create(name="Lab", slug="lab")
    run = Run.objects.create(team=team, number=1, name="a run", spec={})
    nodes = [node(f"n{number}") for number in range(8)]
    together = Barrier(8)

    def claim(one: Node) -> Attempt | None:
        together.wait()
        try:
            return Run.objects.claim(run.pk, one)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        taken = [attempt for attempt in pool.map(claim, nodes) if attempt]
    assert len(taken) == 1 and Attempt.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_eight_claims_at_once_give_a_nodes_two_slots_to_two_runs() -> None:
    team = Team.objects.create(name="Lab", slug="lab")
    runs = [Run.objects.create(team=team, number=number, name="a run", spec={}) for number in range(8)]
    here, together = node(num=2), Barrier(8)

    def claim(run: Run) -> Attempt | None:
        together.wait()
        try:
            return Run.objects.claim(run.pk, here)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        taken = [attempt for attempt in pool.map(claim, runs) if attempt]
    assert sorted(device for attempt in taken for device in attempt.devices) == ["cpu0", "cpu1"]


def test_a_cancelled_or_deleted_run_is_never_claimed(make_run: Callable[..., Run], people: Any) -> None:
    cancelled, deleted = make_run(), make_run(deleted=timezone.now())
    assert stop_run(cancelled, people.member)
    assert Run.objects.claim(cancelled.pk, node()) is None and Run.objects.claim(deleted.pk, node("n2")) is None
    cancelled.refresh_from_db()
    assert cancelled.status == Status.STOPPED and not stop_run(cancelled, people.member)


def test_priority_goes_first_then_the_team_that_runs_least_then_age(make_run: Callable[..., Run], people: Any) -> None:
    make_run(status=Status.RUNNING, name="at work")
    names = {
        "busy team, old": {},
        "busy team, new": {},
        "idle team": {"team": people.other_team},
        "urgent": {"priority": 5},
    }
    for name, fields in names.items():
        make_run(name=name, **fields)
    waiting = Run.objects.waiting_for(node())
    assert [run.name for run in waiting] == ["urgent", "idle team", "busy team, old", "busy team, new"]


def test_a_run_goes_on_where_its_folder_is_unless_the_storage_is_shared(make_run: Callable[..., Run]) -> None:
    home, stranger = node("home", storage="nfs"), node("stranger")
    sharer = node("sharer", storage="nfs")
    make_run(node=home)
    assert [Run.objects.waiting_for(one).count() for one in (home, stranger, sharer)] == [1, 0, 1]


def test_gpus_are_given_apart_or_shared_where_there_are_too_few() -> None:
    gpus: list[Any] = [{"id": f"cuda{number}", "kind": "cuda"} for number in range(4)]
    wanted = Resources(training_devices=2, generation_devices=2)
    assert placed(wanted, gpus, set()) == ["cuda0", "cuda1", "cuda2", "cuda3"]
    assert placed(wanted, gpus, {"cuda3"}) is None
    assert placed(wanted, gpus[:2], set()) == ["cuda0", "cuda1"]
    assert num_needed(wanted, gpus[:1]) == 0
    assert placed(wanted, list(CPU), set()) == ["cpu0"]


def test_a_cpu_node_takes_at_most_a_rank_to_a_core() -> None:
    two_cores: list[Any] = [{"id": "cpu0", "kind": "cpu", "cores": 2}]
    assert [num_needed(Resources(training_devices=num), two_cores) for num in (1, 2, 3, 64)] == [1, 1, 0, 0]


def claimed(run: Run) -> Attempt:
    attempt = Run.objects.claim(run.pk, Node.objects.first() or node())
    assert attempt
    return attempt


def test_a_renewed_lease_lasts_and_an_old_attempt_is_refused(make_run: Callable[..., Run]) -> None:
    run = make_run()
    first = claimed(run)
    Attempt.objects.update(lease_until=timezone.now() - timedelta(hours=1))
    assert Attempt.objects.expired().count() == 1
    assert Attempt.objects.renew(first.pk, "here:1") and not Attempt.objects.expired().exists()
    record_end(first, Ending(Outcome.LOST))
    second = claimed(run)
    assert not Attempt.objects.renew(first.pk, "here:1") and Attempt.objects.renew(second.pk, "here:2")


def test_an_end_is_recorded_once_and_not_by_an_old_attempt(make_run: Callable[..., Run]) -> None:
    run = make_run()
    first = claimed(run)
    assert record_end(first, Ending(Outcome.LOST, "trainer_lost", "Gone."))
    second = claimed(run)
    assert not record_end(first, Ending(Outcome.FAILED))
    assert record_end(second, Ending(Outcome.SUCCEEDED)) and not record_end(second, Ending(Outcome.FAILED))
    run.refresh_from_db()
    assert run.status == Status.SUCCEEDED and run.ended
    assert list(run.attempts.order_by("number").values_list("outcome", flat=True)) == ["lost", "succeeded"]


def test_a_run_that_is_lost_while_stopping_is_stopped(make_run: Callable[..., Run], people: Any) -> None:
    run = make_run()
    attempt = claimed(run)
    assert stop_run(run, people.member)
    record_end(attempt, Ending(Outcome.LOST))
    run.refresh_from_db()
    assert run.status == Status.STOPPED and run.stopped_by == people.member


def test_a_second_resume_from_an_older_checkpoint_supersedes_more(make_run: Callable[..., Run]) -> None:
    run = make_run()
    for step in (None, 20, 10):
        attempt = claimed(run)
        begin(attempt)
        resumed(run.pk, attempt.number, step)
        record_end(attempt, Ending(Outcome.DRAINED))
    bounds = list(run.attempts.order_by("number").values_list("resumed_from", "superseded_after"))
    assert bounds == [(None, 10), (20, 10), (10, None)]


def test_a_run_lost_four_times_in_a_row_fails_with_the_last_reason(make_run: Callable[..., Run]) -> None:
    run = make_run()
    for _ in range(4):
        record_end(claimed(run), Ending(Outcome.LOST, "trainer_lost", "Gone."))
    run.refresh_from_db()
    assert run.status == Status.FAILED and run.num_lost == 3 and "Gone." in run.sentence


@pytest.mark.parametrize("num_lost", [0, 3])
def test_a_dead_generator_is_a_loss_as_often_as_a_dead_trainer(
    make_run: Callable[..., Run], tmp_path: Path, num_lost: int
) -> None:
    sentence = "The generator ended unexpectedly, as when memory runs out; the run goes on from its last checkpoint."
    told = {"outcome": "failed", "code": "generator_died", "sentence": sentence}
    (tmp_path / "exit.json").write_text(json.dumps(told))
    run = make_run(num_lost=num_lost)
    assert record_end(claimed(run), read_ending(AttemptFolder(tmp_path), 1, stopping=False, draining=False))
    run.refresh_from_db()
    assert run.status == (Status.FAILED if num_lost else Status.QUEUED)
    assert (run.attempts.get().outcome, run.attempts.get().sentence) == (Outcome.LOST, sentence)
    assert run.code == "generator_died" and ("goes on" in run.sentence) == (not num_lost)


@pytest.mark.parametrize(
    ("now", "words"),
    [
        ('{"phase": "warm_start", "step": 7, "since": 1}   ', " It was at warm start after step 7."),
        ("[]", ""),
        ('{"phase": 3, "step": 7}', ""),
        ('{"pha', ""),
    ],
)
def test_a_killed_trainers_last_sign_is_told(tmp_path: Path, now: str, words: str) -> None:
    (tmp_path / "now").write_text(now)
    ending = read_ending(AttemptFolder(tmp_path), -9, stopping=False, draining=False)
    assert ending.sentence == f"The trainer ended by SIGKILL, as when memory runs out and left no report.{words}"


def test_runs_of_other_teams_and_deleted_ones_are_not_visible(make_run: Callable[..., Run], people: Any) -> None:
    mine = make_run()
    make_run(team=people.other_team)
    gone = make_run(deleted=timezone.now())
    assert list(Run.objects.visible_to(people.member)) == [mine]
    assert list(Run.objects.deleted_of(people.member)) == [gone]
    mine.attempts.create(number=1, lease_until=timezone.now())
    assert Attempt.objects.visible_to(people.member).count() == 1
    assert not Attempt.objects.visible_to(people.outsider).exists()


@pytest.mark.parametrize(
    ("number", "told"), [(9, "by SIGKILL, as when memory runs out"), (11, "by SIGSEGV"), (40, "by signal 40")]
)
def test_a_trainer_that_any_signal_ended_is_lost_and_the_signal_is_named(
    number: int, told: str, tmp_path: Path
) -> None:
    ending = read_ending(AttemptFolder(tmp_path), -number, stopping=False, draining=False)
    assert ending.outcome == Outcome.LOST and told in ending.sentence

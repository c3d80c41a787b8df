"""A run's life with the real agent, Celery, Postgres and Valkey; the trainer is scripted so that it can be killed."""

import json
import signal
import subprocess
import time
from collections.abc import Callable

import psutil
import pytest
from django.db import connection
from vantage.nodes.models import Node
from vantage.processes import carrying, end
from vantage.runs.folder import RunFolder, is_held
from vantage.runs.models import Event, MetricRow, Run
from vantage.runs.resumes import resumes_of
from vantage.runs.resuming import resume
from vantage.runs.states import Status
from vantage.runs.trainer_process import MARK
from world import (
    World,
    assert_every_step_is_current_once,
    at_step,
    status,
    supervisor_of,
    trainer_of,
    until,
)


def test_a_queued_run_reaches_its_end(world: World, queue: Callable[..., Run]) -> None:
    world.agent()
    run = queue()
    until(lambda: status(run) == Status.SUCCEEDED)
    assert_every_step_is_current_once(run, 20)
    attempt = run.attempts.get()
    assert (attempt.outcome, attempt.sentence, attempt.step) == ("succeeded", "As written.", 20)
    assert "secrets: []" in attempt.log.text
    assert run.checkpoints.filter(pruned=None).count() == 4
    rows = RunFolder.of(run.pk).data("train").read_text().splitlines()
    assert json.loads(rows[0])["answer"] == "2"


def test_a_run_is_taken_when_its_message_was_lost(world: World, queue: Callable[..., Run]) -> None:
    run = queue()  # no node is there to be told
    world.agent(steps=2)
    until(lambda: status(run) == Status.SUCCEEDED)


def test_a_killed_supervisor_is_replaced_and_the_trainer_goes_on(world: World, queue: Callable[..., Run]) -> None:
    world.agent(steps=60, pause=0.1)
    run = queue()
    until(at_step(run, 3))
    trainer = trainer_of(run)
    supervisor_of(run).send(signal.SIGKILL)
    until(lambda: status(run) == Status.SUCCEEDED)
    assert run.attempts.count() == 1 and trainer == trainer_of(run)
    assert_every_step_is_current_once(run, 60)


def test_a_killed_agent_and_supervisor_lose_nothing(world: World, queue: Callable[..., Run]) -> None:
    agent = world.agent(steps=60, pause=0.1)
    run = queue()
    until(at_step(run, 3))
    agent.kill()
    supervisor_of(run).send(signal.SIGKILL)
    world.agent(steps=60, pause=0.1)
    until(lambda: status(run) == Status.SUCCEEDED)
    assert run.attempts.count() == 1
    assert_every_step_is_current_once(run, 60)


def test_a_killed_trainer_is_resumed_from_its_checkpoint(world: World, queue: Callable[..., Run]) -> None:
    world.agent(steps=60, pause=0.1, every=20)
    run = queue()
    until(at_step(run, 23))
    trainer_of(run).send(signal.SIGKILL)
    until(lambda: status(run) == Status.SUCCEEDED)
    first, second = run.attempts.order_by("number")
    assert (first.outcome, first.superseded_after, second.resumed_from) == ("lost", 20, 20)
    assert "SIGKILL" in first.sentence
    assert_every_step_is_current_once(run, 60)
    run.refresh_from_db()
    told = resumes_of(run).verdicts[0].sentence
    assert told.startswith("Identical to uninterrupted: step") and "computed twice, by attempts 1 and 2" in told


def test_steps_are_current_from_the_checkpoint_that_the_trainer_took_and_not_from_the_newest(
    world: World, queue: Callable[..., Run]
) -> None:
    world.agent(steps=60, pause=0.1, every=10)
    run = queue()
    until(at_step(run, 23))
    (RunFolder.of(run.pk).path / "checkpoints" / "step-000020" / "damaged").touch()
    trainer_of(run).send(signal.SIGKILL)
    until(lambda: status(run) == Status.SUCCEEDED)
    first, second = run.attempts.order_by("number")
    assert (first.superseded_after, second.resumed_from) == (10, 10)
    assert_every_step_is_current_once(run, 60)
    assert list(run.checkpoints.filter(attempt=1, pruned=None).values_list("step", flat=True)) == [10]


def test_a_trainer_lost_again_and_again_fails_with_the_reason(world: World, queue: Callable[..., Run]) -> None:
    world.agent(steps=1000, pause=0.1, every=1000)
    run = queue()
    for number in range(1, 5):
        until(lambda number=number: Run.objects.filter(pk=run.pk, attempt=number, status=Status.RUNNING).exists())
        until(RunFolder.of(run.pk).attempt(number).trainer.exists)
        trainer_of(run, number).send(signal.SIGKILL)
        until(lambda number=number: run.attempts.get(number=number).outcome == "lost")
    run.refresh_from_db()
    assert run.status == Status.FAILED and "lost 4 times" in run.sentence


def test_a_trainer_that_dies_of_an_error_fails_with_its_last_words(world: World, queue: Callable[..., Run]) -> None:
    world.agent(end="die")
    run = queue()
    until(lambda: status(run) == Status.FAILED)
    run.refresh_from_db()
    assert run.sentence.endswith("Its log ends: RuntimeError: out of luck")


def test_a_stopped_run_ends_with_a_checkpoint(world: World, queue: Callable[..., Run]) -> None:
    world.agent(steps=10_000, pause=0.1, every=10_000)
    run = queue()
    until(at_step(run, 3))
    begun = time.monotonic()
    assert Run.objects.filter(pk=run.pk).move("ask_stop") == 1
    until(lambda: status(run) == Status.STOPPED)
    assert time.monotonic() - begun < 5
    assert run.checkpoints.count() == 1 and run.attempts.get().outcome == "stopped"


def test_a_stopped_run_that_a_person_resumes_goes_on_from_its_checkpoint(
    world: World, queue: Callable[..., Run]
) -> None:
    world.agent(steps=60, pause=0.1, every=1000)
    run = queue()
    until(at_step(run, 3))
    Run.objects.filter(pk=run.pk).move("ask_stop")
    until(lambda: status(run) == Status.STOPPED)
    run.refresh_from_db()
    assert resume(run) and not resume(run)
    until(lambda: status(run) == Status.SUCCEEDED)
    assert run.attempts.count() == 2
    assert_every_step_is_current_once(run, 60)


def test_a_fork_begins_at_step_0_with_the_checkpoint_of_its_parent(world: World, queue: Callable[..., Run]) -> None:
    world.agent(steps=20, pause=0.01, every=10)
    parent = queue()
    until(lambda: status(parent) == Status.SUCCEEDED)
    parent.refresh_from_db()
    fork = queue(parent=parent, parent_step=10, optimizer="fresh")
    until(lambda: status(fork) == Status.SUCCEEDED)
    told = Event.objects.get(run=fork, kind="forked").data
    assert told == {"checkpoint": "step-000010", "keep_optimizer": False, "weights": "of step 10"}
    assert_every_step_is_current_once(fork, 20)


def test_a_run_of_a_dead_node_is_lost_waits_for_it_and_goes_on_when_it_returns(
    world: World, queue: Callable[..., Run]
) -> None:
    agent = world.agent("n1", steps=60, pause=0.1, every=10)
    run = queue()
    until(at_step(run, 13))
    agent.kill()
    end(carrying("WORLD", str(world.home)), signal.SIGKILL, 5)  # the machine is gone
    world.agent("n2", steps=60)
    until(lambda: status(run) == Status.LOST)
    run.refresh_from_db()
    assert run.sentence.startswith("Its node n1 has been silent since") and run.attempts.get().outcome == ""
    world.agent("n1", steps=60)
    until(lambda: status(run) == Status.SUCCEEDED)
    assert {attempt.node.name for attempt in run.attempts.select_related("node") if attempt.node} == {"n1"}
    assert_every_step_is_current_once(run, 60)


def test_a_leaving_node_gives_its_run_back_and_another_start_resumes_it(
    world: World, queue: Callable[..., Run]
) -> None:
    agent = world.agent(steps=60, pause=0.1, every=1000)
    run = queue()
    until(at_step(run, 3))
    agent.terminate()
    assert agent.wait(30) == 0
    assert status(run) == Status.QUEUED and run.attempts.get().outcome == "drained"
    assert Node.objects.get().draining and not carrying(MARK, str(RunFolder.of(run.pk).path))
    world.agent(steps=60, pause=0.01)
    until(lambda: status(run) == Status.SUCCEEDED)
    assert_every_step_is_current_once(run, 60)


CONTAINER = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")


@pytest.mark.skipif(subprocess.run([*CONTAINER, "true"], capture_output=True).returncode != 0, reason="no namespaces")
def test_as_a_containers_first_process_a_node_buries_orphans_and_drains(
    world: World, queue: Callable[..., Run]
) -> None:
    outside = world.agent(under=CONTAINER, steps=1000)
    run = queue()
    until(at_step(run, 7))
    first = psutil.Process(outside.pid).children()[0]
    enter = ["nsenter", "--target", str(first.pid), "--pid", "--mount"]
    subprocess.run([*enter, "sh", "-c", "sleep 1 & exit"], check=True)
    orphans = [child for child in first.children() if child.name() == "sleep"]
    assert len(orphans) == 1
    until(lambda: not orphans[0].is_running(), 10)  # psutil takes a zombie for running
    first.terminate()
    assert outside.wait(40) == 0
    assert status(run) == Status.QUEUED and run.attempts.get().outcome == "drained"
    assert not carrying("WORLD", str(world.home))


def test_a_stalled_supervisor_is_ended_after_its_lease_and_replaced(world: World, queue: Callable[..., Run]) -> None:
    world.agent(steps=150, pause=0.1)
    run = queue()
    until(at_step(run, 3))
    supervisor_of(run).send(signal.SIGSTOP)
    until(lambda: status(run) == Status.SUCCEEDED)
    assert run.attempts.count() == 1
    assert_every_step_is_current_once(run, 150)


def test_a_fenced_supervisor_ends_its_trainer(world: World, queue: Callable[..., Run]) -> None:
    world.agent(steps=10_000, pause=0.1)
    run = queue()
    until(at_step(run, 3))
    Run.objects.filter(pk=run.pk).update(attempt=99, status=Status.FAILED)
    until(lambda: not is_held(RunFolder.of(run.pk).trainer_lock))
    assert MetricRow.objects.filter(run=run).count() < 10_000


def test_two_nodes_on_one_machine_take_one_run_each(world: World, queue: Callable[..., Run]) -> None:
    world.agent("n1", steps=30, pause=0.1)
    world.agent("n2", steps=30, pause=0.1)
    until(lambda: Node.objects.count() == 2)
    runs = [queue(), queue()]
    until(lambda: Run.objects.filter(status=Status.RUNNING).count() == 2)
    assert {run.node.name for run in Run.objects.select_related("node") if run.node} == {"n1", "n2"}
    for run in runs:
        until(lambda run=run: status(run) == Status.SUCCEEDED)


def test_journal_lines_reach_postgres_within_a_second(world: World, queue: Callable[..., Run]) -> None:
    world.agent(steps=20, pause=0.2)
    run = queue()
    until(at_step(run, 5))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT extract(epoch FROM clock_timestamp()) - max(time) FROM runs_metricrow WHERE run_id = %s", [run.pk]
        )
        assert cursor.fetchone()[0] < 1.0
    until(lambda: status(run) == Status.SUCCEEDED)
    assert Event.objects.filter(run=run, kind="checkpoint").count() == 4

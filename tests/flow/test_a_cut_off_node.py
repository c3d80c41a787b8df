"""A node that was given up works on unseen; whoever goes on from there neither loses its steps nor works beside it."""

import signal
from collections.abc import Callable

from vantage.runs.folder import RunFolder
from vantage.runs.models import Run
from vantage.runs.resuming import resume
from vantage.runs.states import Status
from world import World, assert_every_step_is_current_once, status, supervisor_of, trainer_of, until


def give_up(run: Run) -> None:
    """Lose the run as after ten silent leases, and resume it as a person does."""
    assert Run.objects.filter(pk=run.pk).move("silence")
    run.refresh_from_db()
    assert resume(run)


def test_what_a_fenced_attempt_did_unseen_is_stored_when_the_next_goes_on_from_there(
    world: World, queue: Callable[..., Run]
) -> None:
    agent = world.agent(steps=60, pause=0.1, every=10)
    run = queue()
    until(run.checkpoints.exists)
    supervisor = supervisor_of(run)
    agent.send_signal(signal.SIGSTOP)
    supervisor.send(signal.SIGSTOP)
    folder = RunFolder.of(run.pk)
    until(lambda: "checkpoints/step-000020" in folder.checkpoints())
    give_up(run)
    supervisor.send(signal.SIGCONT)
    agent.send_signal(signal.SIGCONT)
    until(lambda: status(run) == Status.SUCCEEDED)
    first, second = run.attempts.order_by("number")
    assert (first.outcome, first.code) == ("lost", "abandoned")
    assert second.resumed_from == first.superseded_after and second.resumed_from >= 20
    assert_every_step_is_current_once(run, 60)


def test_a_trainer_of_an_earlier_attempt_is_ended_and_not_taken_for_ones_own(
    world: World, queue: Callable[..., Run]
) -> None:
    agent = world.agent(steps=60, pause=0.2, every=5)
    run = queue()
    until(run.checkpoints.exists)
    agent.kill()
    supervisor_of(run).send(signal.SIGKILL)
    trainer = trainer_of(run)
    give_up(run)
    assert trainer.alive()
    world.agent(steps=60, pause=0.1, every=5)
    until(lambda: status(run) == Status.SUCCEEDED)
    assert run.attempts.count() == 2 and not trainer.alive()
    assert_every_step_is_current_once(run, 60)

"""A node paused so that its runs go back: they checkpoint, wait, and go on when it is resumed; a removed one leaves."""

from collections.abc import Callable

from vantage.nodes.models import Node
from vantage.runs.models import Run
from vantage.runs.states import Status
from world import World, assert_every_step_is_current_once, at_step, status, until


def test_runs_sent_back_from_a_paused_node_go_on_when_it_is_resumed(world: World, queue: Callable[..., Run]) -> None:
    world.agent(steps=60, pause=0.1, every=1000)
    run = queue()
    until(at_step(run, 3))
    Node.objects.update(paused=True, sends_back=True)
    until(lambda: status(run) == Status.QUEUED, 20)
    assert run.attempts.get().outcome == "drained"
    Node.objects.update(paused=False, sends_back=False)
    until(lambda: status(run) == Status.SUCCEEDED)
    assert_every_step_is_current_once(run, 60)


def test_an_agent_whose_node_was_removed_leaves(world: World) -> None:
    agent = world.agent()
    until(lambda: Node.objects.exists())
    Node.objects.update(removed="2026-01-01T00:00Z")
    assert agent.wait(20) == 0

"""Where no node lives the web process tells that runs are lost; it takes turns with others, and spares who may live."""

import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connections
from django.utils import timezone
from vantage.nodes.models import Node
from vantage.processes import carrying, end
from vantage.runs.models import Attempt, Run
from vantage.runs.silence import SILENT_LEASES
from vantage.runs.states import Status
from vantage.runs.web_sweep import LOCK, look
from world import World, at_step, status, until


def test_the_run_of_the_only_node_is_lost_when_that_is_killed(world: World, queue: Callable[..., Run]) -> None:
    world.environment["VANTAGE_LEASE_SECONDS"] = "1"
    world.web()
    world.agent("n1", steps=10_000, pause=0.1)
    run = queue()
    until(at_step(run, 3))
    web = world.agents[0]
    end([one for one in carrying("WORLD", str(world.home)) if one.pid != web.pid], 9, 5)  # the machine is gone
    until(lambda: status(run) == Status.LOST, SILENT_LEASES + 15)
    run.refresh_from_db()
    assert run.sentence.startswith("Its node n1 has been silent since")
    assert run.attempts.get().outcome == ""  # the node may yet return with it


@pytest.fixture
def silent(queue: Callable[..., Run], settings: object) -> Run:
    """A run at work on a node of which nothing has been heard for many leases."""
    run, node = queue(), Node.objects.create(name="n1", host="here", devices=[{"id": "cpu0", "kind": "cpu"}])
    assert Run.objects.claim(run.pk, node)
    long_ago = timezone.now() - timedelta(seconds=(SILENT_LEASES + 1) * settings.LEASE_SECONDS)
    Node.objects.update(heartbeat=long_ago)
    Attempt.objects.update(lease_until=long_ago)
    return run


def test_one_web_process_looks_at_a_time(silent: Run) -> None:
    other = connections.create_connection("default")
    try:
        other.cursor().execute("SELECT pg_advisory_lock(%s)", [LOCK])
        assert look() == 0 and status(silent) == Status.STARTING
    finally:
        other.close()
    until(lambda: look() == 1, 5)
    assert (look(), status(silent)) == (0, Status.LOST)


def test_after_a_start_nodes_have_one_lease_to_beat_again(silent: Run, world: World) -> None:
    world.environment |= {"VANTAGE_LEASE_SECONDS": "6", "VANTAGE_SWEEP_SECONDS": "0.2"}
    web = world.web()
    until(lambda: b"Vantage runs at" in (world.home / "web.log").read_bytes(), 30)
    time.sleep(2)
    assert web.poll() is None and status(silent) == Status.STARTING
    until(lambda: status(silent) == Status.LOST, 20)

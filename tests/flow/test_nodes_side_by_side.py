"""Two real agents on one machine, or two slots of one, work on two runs at the same time, each on its own devices."""

import os
from collections.abc import Callable

import pytest
from vantage.nodes.models import Node
from vantage.runs.models import Run
from vantage.runs.series import series
from vantage.runs.states import Status
from vantage.runs.stopping import stop_run
from vantage.teams.models import User
from world import World, status, trainer_of, until

CORES = sorted(os.sched_getaffinity(0))[:2]
pytestmark = pytest.mark.skipif(len(CORES) < 2, reason="one core cannot be shared out")


def at_work_together(queue: Callable[..., Run]) -> list[Run]:
    """Two runs once both are under way, and the cores that their trainers are kept to."""
    runs = [queue(), queue()]
    until(lambda: all(status(run) == Status.RUNNING and run.attempts.get().step > 2 for run in runs))
    kept = [sorted(os.sched_getaffinity(trainer_of(run).pid)) for run in runs]
    assert sorted(kept) == [[core] for core in CORES]
    return runs


def stop(runs: list[Run]) -> None:
    for run in runs:
        stop_run(run, User.objects.get())
    until(lambda: all(status(run) == Status.STOPPED for run in runs))


def test_two_nodes_take_a_run_each_with_gpus_and_cores_of_their_own(world: World, queue: Callable[..., Run]) -> None:
    tool = world.home / "nvidia-smi"
    tool.write_text("#!/bin/sh\nprintf '0, NVIDIA H200, 143771\\n1, NVIDIA H200, 143771\\n'\n")
    tool.chmod(0o755)
    world.environment["PATH"] = f"{world.home}{os.pathsep}{world.environment['PATH']}"
    for number, name in enumerate("ab"):
        world.agent(name, choice={"devices": f"cuda:{number}", "cores": str(CORES[number])}, steps=10_000, pause=0.1)
    until(lambda: Node.objects.count() == 2)
    third = world.agent("c", choice={"devices": "cuda:0"})
    runs = at_work_together(queue)
    assert {run.attempts.get().node.name for run in runs} == {"a", "b"}
    logs = sorted(run.attempts.get().log.text.splitlines()[0] for run in runs)
    assert logs == ["GPUs: 0", "GPUs: 1"]
    assert third.wait(20) == 1 and "gives out cuda0 already" in (world.home / "c.log").read_text()
    stop(runs)


def test_two_slots_of_a_node_take_a_run_each_with_cores_of_their_own(world: World, queue: Callable[..., Run]) -> None:
    world.environment["VANTAGE_USAGE_SECONDS"] = "0.3"
    world.agent(choice={"slots": 2, "cores": ",".join(map(str, CORES))}, steps=10_000, pause=0.1)
    runs = at_work_together(queue)
    for run in runs:
        until(lambda run=run: series(run, "node/cpu/util").last, 10)
    until(lambda: Node.objects.get().history, 20)  # told with a heartbeat
    used, total = Node.objects.get().usage["memory"]
    assert 0 < used < total
    stop(runs)

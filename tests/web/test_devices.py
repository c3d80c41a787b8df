"""What a node gives out: chosen GPUs, slots and cores; what this machine has not is refused in a sentence."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from vantage import cli
from vantage.nodes.devices import Choice, devices
from vantage.nodes.models import Node
from vantage.nodes.registration import register
from vantage.runs.gone import note_gone
from vantage.runs.models import Event, Run
from vantage.runs.placement import cores_of, num_needed, placed
from vantage.teams.models import User
from vantage_trainer.spec import Resources


@pytest.fixture
def gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """A machine whose nvidia-smi lists so many GPUs."""

    def has(number: int) -> None:
        rows = "".join(f"{index}, NVIDIA H200, 143771\\n" for index in range(number))
        (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\nprintf '{rows}'\n")
        (tmp_path / "nvidia-smi").chmod(0o755)

    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    has(4)
    return has


@pytest.fixture
def cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor of five cores."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(5)))


def ids(choice: Choice) -> list[str]:
    return [str(device["id"]) for device in devices(choice)]


def test_a_node_gives_out_all_gpus_or_those_chosen(gpus: Callable[[int], None]) -> None:
    assert ids(Choice()) == ["cuda0", "cuda1", "cuda2", "cuda3"]
    assert ids(Choice(devices="cuda:2, cuda0,cuda:2")) == ["cuda2", "cuda0"]
    assert devices(Choice(devices="cuda1"))[0]["memory"] == 143771 * 2**20


def test_without_gpus_the_processor_is_one_slot_or_as_many_as_chosen(cores: None) -> None:
    whole = devices(Choice())[0]
    assert (whole["id"], whole["cores"], "cpus" in whole) == ("cpu0", 5, False)
    assert [device["cpus"] for device in devices(Choice(slots=2))] == [[0, 1], [2, 3, 4]]
    assert [device["cpus"] for device in devices(Choice(slots=2, cores="1-2,4"))] == [[1], [2, 4]]
    assert [device["cpus"] for device in devices(Choice(cores="3"))] == [[3]]


def test_gpus_can_be_given_out_with_cores_of_their_own(gpus: Callable[[int], None], cores: None) -> None:
    offered: list[Any] = devices(Choice(devices="cuda:0,cuda:1", cores="0-2"))
    assert cores_of(["cuda1"], offered) == {0, 1, 2} and cores_of(["cuda3"], offered) == set()


@pytest.mark.parametrize(
    ("choice", "sentence"),
    [
        (Choice(devices="cuda:9"), "This machine has no GPU cuda9. It has cuda0, cuda1, cuda2, cuda3."),
        (Choice(devices="tpu0"), "This machine has no GPU tpu0."),
        (Choice(devices="cuda:0", slots=2), "Give either --devices, for GPUs, or --slots, for the processor."),
        (Choice(slots=0), "5 cores make 1 to 5 slots"),
        (Choice(slots=6), "5 cores make 1 to 5 slots"),
        (Choice(cores="0-7"), "This machine has no core 5, 6, 7. It has 0, 1, 2, 3, 4."),
        (Choice(cores="3-1"), "3-1 names no cores: write them as in --cores 0-3,6."),
        (Choice(cores="a,²"), "a,² names no cores"),
    ],
)
def test_what_the_machine_has_not_is_refused(
    choice: Choice, sentence: str, gpus: Callable[[int], None], cores: None
) -> None:
    with pytest.raises(ValueError, match="machine|slots|cores") as refused:
        devices(choice)
    assert str(refused.value).startswith(sentence)


def test_the_command_line_tells_a_refusal_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], db: None
) -> None:
    monkeypatch.setenv("VANTAGE_HOME", str(tmp_path))
    monkeypatch.setattr("vantage.runs.agent.Agent._keep_celery", lambda self: None)
    monkeypatch.setattr("signal.signal", lambda number, handler: None)
    monkeypatch.setattr("sys.argv", ["vantage", "node", "--name", "b", "--slots", "0"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1 and "slots, a core to each at least, not 0." in capsys.readouterr().err
    assert not Node.objects.exists()


def test_two_living_nodes_on_a_machine_do_not_share_a_gpu(gpus: Callable[[int], None], db: None) -> None:
    register("a", Choice(devices="cuda:0,cuda:1"))
    with pytest.raises(ValueError, match="Node a on this machine gives out cuda1 already.* --devices cuda2"):
        register("b", Choice(devices="cuda:1,cuda:2"))
    register("b", Choice(devices="cuda:2,cuda:3"))
    with pytest.raises(ValueError, match="the processor is left, with --slots 1"):
        register("c", Choice())
    register("a", Choice(devices="cuda:0"))  # its own it keeps
    register("c", Choice(slots=1))


@pytest.mark.parametrize("state", [{"draining": True}, {"heartbeat": "2020-01-01T00:00Z"}, {"host": "another"}])
def test_gpus_of_a_node_that_has_left_or_stands_elsewhere_are_free(
    state: dict[str, Any], gpus: Callable[[int], None], db: None
) -> None:
    register("a", Choice())
    Node.objects.update(**state)
    register("b", Choice())


def test_a_slot_with_too_few_cores_is_passed_over() -> None:
    slots: list[Any] = [{"id": "cpu0", "kind": "cpu", "cores": 2}, {"id": "cpu1", "kind": "cpu", "cores": 3}]
    wanted = Resources(training_devices=3)
    assert placed(wanted, slots, set()) == ["cpu1"] and placed(wanted, slots, {"cpu1"}) is None
    assert num_needed(Resources(training_devices=4), slots) == 0


def test_a_gpu_that_has_vanished_is_shown_as_gone_told_to_its_run_and_given_to_none(
    gpus: Callable[[int], None], make_run: Callable[..., Run], people: Any, client_of: Callable[[User], Client]
) -> None:
    wanted = {"resources": {"training_devices": 2, "generation_devices": 2}}
    run, waiting = make_run(spec=wanted), make_run(spec=wanted | {"resources": {"training_devices": 4}})
    node, earlier = register("box", Choice())
    assert earlier == [] and Run.objects.claim(run.pk, node)
    gpus(3)
    for _ in range(2):  # once is enough
        note_gone(*register("box", Choice()))
    node.refresh_from_db()
    assert [device["id"] for device in node.devices] == ["cuda0", "cuda1", "cuda2"]
    assert [device["id"] for device in node.gone] == ["cuda3"]
    told = Event.objects.get(run=run, kind="warning").data["sentence"]
    assert told.startswith("Device cuda3 is no longer there since node box has started again.")
    assert "cuda3 is gone since" in client_of(people.viewer).get(reverse("nodes")).content.decode()
    assert told in client_of(people.viewer).get(reverse("run", args=[run.pk])).content.decode()
    run.attempts.update(outcome="failed")
    assert Run.objects.claim(waiting.pk, node) is None
    gpus(4)
    note_gone(*register("box", Choice()))
    node.refresh_from_db()
    assert node.gone == [] and Run.objects.claim(waiting.pk, node)


def test_a_device_that_was_only_not_chosen_again_is_not_gone(gpus: Callable[[int], None], db: None) -> None:
    register("box", Choice())
    note_gone(*register("box", Choice(devices="cuda:0")))
    assert Node.objects.get().gone == [] and len(Node.objects.get().devices) == 1

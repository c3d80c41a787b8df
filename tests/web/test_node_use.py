"""The use of nodes: as metrics of their runs, a row a step, and as figures with an hour's history on the page Nodes."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from vantage.nodes.history import EVERY, MOST, History, means
from vantage.nodes.models import Node
from vantage.nodes.usage import Gauge, Usage, usage
from vantage.runs.models import Attempt, MetricRow, Run
from vantage.runs.node_rows import NodeRows, values
from vantage.runs.reading import Asked, figures, shown_charts
from vantage.runs.series import series
from vantage.teams.models import User
from vantage_trainer.metrics import METRICS, find, is_clocked
from vantage_trainer.spec import RunSpec

GB = 10**9


def look(cpu: float = 0.5, **gpus: list[float]) -> Usage:
    return {"cpu": cpu, "memory": [8.0 * GB, 24.0 * GB], "disk": [30.0 * GB, 200.0 * GB], "gpus": gpus}


class Told(Gauge):
    """A gauge that says what it is told to."""

    def __init__(self) -> None:
        super().__init__(Path("/"))

    def say(self, told: Usage) -> None:
        self._newest = told


@pytest.fixture
def attempt(make_run: Callable[..., Run]) -> Attempt:
    run = make_run(spec=RunSpec().model_dump(mode="json"))
    made = Run.objects.claim(run.pk, Node.objects.create(name="n", host="h", devices=[{"id": "cpu0", "kind": "cpu"}]))
    assert made
    return made


def shipped(rows: NodeRows, gauge: Told, *cpus: float) -> None:
    for cpu in cpus:
        gauge.say(look(cpu))
        rows.ship()


def test_of_each_step_the_mean_is_kept_in_one_row(attempt: Attempt) -> None:
    gauge = Told()
    rows = NodeRows(attempt, gauge)
    shipped(rows, gauge, 0.2, 0.4)
    Attempt.objects.update(step=7)
    shipped(rows, gauge, 0.9)
    rows.ship()  # nothing new was seen
    shipped(rows, gauge, 0.7)
    found = series(attempt.run, "node/cpu/util")
    assert found.x == [0, 7] and found.last == [pytest.approx(0.3), pytest.approx(0.8)] and found.repeated == 0
    assert series(attempt.run, "node/disk/free").last == [170 * GB, 170 * GB]
    times = MetricRow.objects.filter(run=attempt.run).values_list("time", flat=True)
    assert all(time.time() - 60 < when <= time.time() for when in times)


def test_they_leave_steps_and_the_trainers_journal_alone(attempt: Attempt) -> None:
    gauge = Told()
    Attempt.objects.update(step=3, seqs={"metrics": 5}, offsets={"metrics": 99})
    shipped(NodeRows(attempt, gauge), gauge, 0.2)
    attempt.refresh_from_db()
    assert (attempt.step, attempt.seqs, attempt.offsets) == (3, {"metrics": 5}, {"metrics": 99})
    assert all(is_clocked(metric.name) for metric in METRICS if metric.name.startswith("node/"))  # in no comparison


def test_a_resumed_attempt_begins_where_it_went_on(attempt: Attempt) -> None:
    gauge = Told()
    Attempt.objects.update(resumed_from=20)
    shipped(NodeRows(attempt, gauge), gauge, 0.2)
    assert MetricRow.objects.values_list("step", flat=True).distinct().get() == 20


def test_a_fenced_attempt_adds_nothing(attempt: Attempt) -> None:
    gauge = Told()
    Run.objects.update(attempt=2)
    shipped(NodeRows(attempt, gauge), gauge, 0.2)
    assert not MetricRow.objects.exists()


def test_a_run_tells_of_its_own_gpus_alone() -> None:
    seen = look(cuda0=[0.9, 70.0 * GB, 150.0 * GB], cuda1=[0.1, 1.0 * GB, 150.0 * GB])
    assert values(seen, ["cuda1"]) == {
        "node/cpu/util": 0.5,
        "node/memory/used": 8 * GB,
        "node/disk/free": 170 * GB,
        "node/cuda1/util": 0.1,
        "node/cuda1/memory": 1 * GB,
    }
    assert all(find(name) for name in values(seen, ["cuda0"]))


def test_the_devices_have_charts_of_their_own(attempt: Attempt) -> None:
    gauge = Told()
    attempt.devices = ["cuda0"]
    rows = NodeRows(attempt, gauge)
    gauge.say(look(cuda0=[0.9, 70.0 * GB, 150.0 * GB]))
    rows.ship()
    charts = {one.chart.slug: one for one in shown_charts(attempt.run) if one.chart.question == "devices"}
    assert {slug: one.keys for slug, one in charts.items()} == {
        "util": ("node/cpu/util", "node/cuda0/util"),
        "memory": ("node/memory/used", "node/cuda0/memory"),
        "disk": ("node/disk/free",),
    }
    drawn = figures(attempt.run, Asked("time", {"util": None}, None, None))["util"]["data"]
    assert [trace["name"] for trace in drawn] == ["Processor", "cuda0"]


def test_a_machine_is_looked_at_with_its_own_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\nprintf '0, 97, 1024, 2048\\n1, [N/A], 5, 10\\n'\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    seen = usage(tmp_path)
    assert seen["gpus"] == {"cuda0": [0.97, 2**30, 2**31]}
    assert 0 <= seen["cpu"] <= 1 and 0 < seen["memory"][0] < seen["memory"][1] and 0 < seen["disk"][0] < seen["disk"][1]


def test_a_node_keeps_an_hour_in_points_of_means(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, gauge = [0.0], Told()
    monkeypatch.setattr("vantage.nodes.history.time.time", lambda: clock[0])
    history, kept = History(gauge), 0
    assert history.fresh() == {}
    for number in range(3 * MOST):
        clock[0] = number * EVERY / 2
        gauge.say(look(number % 2))
        kept += "history" in history.fresh()
    assert len(history.points) == MOST and kept == 3 * MOST / 2
    assert history.points[-1] == (clock[0] - EVERY / 2, {"cpu": 0.5, "memory": pytest.approx(1 / 3, abs=1e-4)})
    assert means([{"cpu": 0.0}, {"cpu": 1.0, "cuda0": 0.5}]) == {"cpu": 0.5, "cuda0": 0.5}


def test_the_page_shows_what_is_in_use_and_its_last_hour(
    people: Any, client_of: Callable[[User], Client], db: None
) -> None:
    hour = [[float(n), {"cpu": n / 10, "memory": 0.5, "cuda0": 1.0}] for n in range(10)]
    told = {"usage": look(0.83, cuda0=[0.97, 118.0 * GB, 150.0 * GB]), "history": hour}
    Node.objects.create(name="box", host="box", **told)
    Node.objects.create(name="new", host="new")  # it has told nothing yet
    page = client_of(people.viewer).get(reverse("nodes")).content.decode()
    assert "83%" in page and "97%" in page and "118 GB" in page and page.count("<polyline") == 3

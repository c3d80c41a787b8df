"""The real trainer with vLLM and DeepSpeed, queued, supervised, killed and resumed."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from vantage.processes import Process, carrying, end
from vantage.runs.demo import queue_demo
from vantage.runs.folder import RunFolder
from vantage.runs.models import Checkpoint, MetricRow, Run, Sample
from vantage.runs.series import series
from vantage.runs.states import Status
from vantage.teams.models import Membership, Team, User
from vantage_trainer import recipes
from vantage_trainer.spec import RunSpec

AGENT = "import django; django.setup(); from vantage.runs.agent import main; main('n1')"
STEPS = 6


def short(spec: RunSpec) -> RunSpec:
    assert spec.warm_start
    spec.warm_start.steps, spec.budget.steps, spec.checkpoint.every_steps, spec.evaluation.every_steps = 20, STEPS, 2, 3
    return spec


def until(reached: Callable[[], object], run: Run, seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        run.refresh_from_db()
        assert run.status != Status.FAILED, run.sentence
        assert time.monotonic() < deadline, run.status
        time.sleep(0.1)


@pytest.mark.engine
def test_the_demo_killed_in_its_fourth_step_goes_on_from_its_checkpoint(
    service_environment: dict[str, str], tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.HOME = tmp_path
    monkeypatch.setattr("vantage.runs.demo.demo_spec", lambda: short(recipes.demo_spec()))
    team = Team.objects.create(name="Lab", slug="lab")
    user = User.objects.create_user("mia")
    Membership.objects.create(team=team, user=user)
    run = queue_demo(team, user)
    environment = service_environment | {"VANTAGE_HOME": str(tmp_path), "VANTAGE_SWEEP_SECONDS": "1"}
    agent = subprocess.Popen([sys.executable, "-P", "-c", AGENT], env=environment, cwd=tmp_path)
    try:
        until(MetricRow.objects.filter(run=run, key__name="reward/mean", step=3).exists, run)
        told = json.loads(RunFolder.of(run.pk).attempt(1).trainer.read_text())
        Process(told["pid"], told["started"]).send(signal.SIGKILL)
        until(lambda: Run.objects.filter(pk=run.pk, status=Status.SUCCEEDED).exists(), run)
    finally:
        agent.terminate()
        agent.wait(40)
        end(carrying("VANTAGE_HOME", str(tmp_path)), signal.SIGKILL, 5)
    first, second = run.attempts.order_by("number")
    assert first.outcome == "lost" and second.resumed_from == first.superseded_after in (2, 4)
    shown = series(run, "reward/mean")
    assert shown.x == list(range(1, STEPS + 1)) and not any(shown.nonfinite)
    assert series(run, "eval/heldout/pass@1").x == [0, 3, 6]
    assert Sample.objects.filter(run=run, attempt=2).exists()
    kept = Checkpoint.objects.filter(run=run, pruned=None).values_list("folder", flat=True)
    assert set(kept) == RunFolder.of(run.pk).checkpoints()

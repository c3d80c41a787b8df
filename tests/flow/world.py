"""A node's agent on a home of its own, with a trainer that is scripted so that it can be killed."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from vantage.processes import Process, carrying
from vantage.runs.folder import RunFolder
from vantage.runs.models import MetricRow, Run
from vantage.runs.series import series
from vantage.runs.trainer_process import MARK

AGENT = """
import django, json, sys
django.setup()
from vantage.nodes.devices import Choice
from vantage.runs.agent import main
main(sys.argv[1], Choice(**json.loads(sys.argv[2])))
"""


@dataclass
class World:
    """A node's agent on a home of its own."""

    home: Path
    environment: dict[str, str]
    agents: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def agent(
        self,
        name: str = "n1",
        under: tuple[str, ...] = (),
        choice: dict[str, str | int] | None = None,
        **script: object,
    ) -> subprocess.Popen[bytes]:
        environment = self.environment | {"SCRIPT": json.dumps(script)}
        log = (self.home / f"{name}.log").open("ab")
        command = [*under, sys.executable, "-P", "-c", AGENT, name, json.dumps(choice or {})]
        started = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        self.agents.append(started)
        return started

    def web(self) -> subprocess.Popen[bytes]:
        """The site alone, in a home of its own."""
        environment = self.environment | {"VANTAGE_HOME": str(self.home / "web")}
        command = [sys.executable, "-P", "-m", "vantage.cli", "web", "--port", "0"]
        log = (self.home / "web.log").open("ab")
        self.agents.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
        return self.agents[-1]


def until(reached: Callable[[], object], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.05)


def status(run: Run) -> str:
    return Run.objects.values_list("status", flat=True).get(pk=run.pk)


def at_step(run: Run, step: int) -> Callable[[], bool]:
    return lambda: MetricRow.objects.filter(run=run, step__gte=step).exists()


def supervisor_of(run: Run) -> Process:
    told = json.loads(RunFolder.of(run.pk).supervisor_lock.read_text())
    return Process(told["pid"], told["started"])


def trainer_of(run: Run, attempt: int = 1) -> Process:
    told = json.loads(RunFolder.of(run.pk).attempt(attempt).trainer.read_text())
    return Process(told["pid"], told["started"])


def assert_every_step_is_current_once(run: Run, steps: int) -> None:
    shown = series(run, "reward/mean")
    assert shown.x == list(range(1, steps + 1)) and shown.repeated == 0
    assert not carrying(MARK, str(RunFolder.of(run.pk).path))

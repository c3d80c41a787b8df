"""A world with an agent to start, and a queue to fill."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from vantage.datasets.models import Dataset
from vantage.processes import carrying, end
from vantage.runs.create import create_run
from vantage.runs.models import Run
from vantage.teams.models import Membership, Team, User
from vantage_trainer.spec import Budget, Data, RunSpec
from world import World


@pytest.fixture
def world(service_environment: dict[str, str], tmp_path: Path, settings: Any) -> Iterator[World]:
    settings.HOME = tmp_path
    paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    own = {"VANTAGE_HOME": str(tmp_path), "PYTHONPATH": paths, "VANTAGE_TRAINER_MODULE": "scripted_trainer"}
    own |= {"VANTAGE_JOB_MODULE": "scripted_trainer", "VANTAGE_IMPORT_MODULE": "scripted_trainer"}
    quick = {"VANTAGE_LEASE_SECONDS": "3", "VANTAGE_SWEEP_SECONDS": "0.5", "WORLD": str(tmp_path)}
    made = World(tmp_path, service_environment | own | quick)
    yield made
    end(carrying("WORLD", str(tmp_path)), signal.SIGKILL, 5)
    for agent in made.agents:
        agent.wait()


@pytest.fixture
def queue(transactional_db: None, world: World) -> Callable[..., Run]:
    team = Team.objects.create(name="Lab", slug="lab")
    user = User.objects.create_user("mia")
    Membership.objects.create(team=team, user=user)
    version = Dataset.objects.create(team=team, name="sums").versions.create(number=1, digest="", num_rows=1)
    version.rows.create(number=1, prompt="1+1=", answer="2")
    spec = RunSpec(data=Data(train="sums@1"), budget=Budget(steps=20))
    return lambda **fields: create_run(team, user, "a run", spec, **fields)

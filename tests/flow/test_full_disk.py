"""On a full disk a run still ends with a sentence, and a trainer can still be asked to stop."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from vantage.datasets.models import Dataset
from vantage.nodes.models import Node
from vantage.processes import Process, carrying
from vantage.runs.create import create_run
from vantage.runs.folder import RunFolder
from vantage.runs.models import Attempt, Run
from vantage.runs.states import Status
from vantage.runs.supervisor import Supervisor
from vantage.runs.trainer_process import MARK, TrainerProcess
from vantage.teams.models import Team, User
from vantage_trainer.spec import Budget, Data, RunSpec

APART = ("unshare", "--map-root-user", "--mount")
FULL = """
import os, sys
from pathlib import Path
from vantage_trainer import attempt
place = Path(sys.argv[1]) / "attempts" / "1"
def work(ours):
    ours.open_journal().warning(0, "all is well")
    with (place / "filler").open("wb") as file:
        while True:
            os.write(file.fileno(), b"x" * 4096)
attempt.leave(attempt.live(Path(sys.argv[1]), 1, work, nothing_done=""))
"""


@pytest.mark.skipif(subprocess.run([*APART, "true"], capture_output=True).returncode != 0, reason="no namespaces")
def test_a_trainer_that_fills_the_disk_reports_it(tmp_path: Path) -> None:
    script = 'mount -t tmpfs -o size=256k none "$0" && "$1" -c "$2" "$0"; cat "$0/attempts/1/exit.json"'
    command = [*APART, "sh", "-c", script, str(tmp_path), sys.executable, FULL]
    told = json.loads(subprocess.run(command, capture_output=True, text=True).stdout.splitlines()[-1])
    assert (told["outcome"], told["code"]) == ("failed", "out_of_disk")
    assert told["sentence"].startswith("The disk is full: free some space")


def test_a_trainer_is_asked_by_a_signal_where_no_file_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeping = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    trainer = TrainerProcess(RunFolder(tmp_path), 1, "none")
    trainer.process = Process.of(sleeping.pid)
    monkeypatch.setattr("vantage.runs.trainer_process.write_whole", _full)
    trainer.ask("stop")
    assert sleeping.wait(10) == -15


def _full(*arguments: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.fixture
def attempt(db: None, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Attempt:
    settings.HOME, settings.TRAINER_MODULE = tmp_path, "stays"
    (tmp_path / "stays.py").write_text("import time; time.sleep(60)")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    team, user = Team.objects.create(name="Lab", slug="lab"), User.objects.create_user("mia")
    version = Dataset.objects.create(team=team, name="sums").versions.create(number=1, digest="", num_rows=1)
    version.rows.create(number=1, prompt="1+1=", answer="2")
    run = create_run(team, user, "a run", RunSpec(data=Data(train="sums@1"), budget=Budget(steps=20)))
    node = Node.objects.create(name="n1", host="here", devices=[{"id": "cpu0", "kind": "cpu"}])
    claimed = Run.objects.claim(run.pk, node)
    assert claimed
    return claimed


def test_a_trainer_whose_name_cannot_be_written_down_does_not_live_on(
    attempt: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signal.signal", lambda *arguments: None)  # a supervisor takes its process' signals
    monkeypatch.setattr("vantage.runs.trainer_process.write_whole", _full)
    folder = RunFolder.of(attempt.run_id)
    folder.attempt(1).path.mkdir(parents=True)
    Supervisor(attempt, folder).stand_by()
    attempt.run.refresh_from_db()
    assert attempt.run.status == Status.FAILED and "No space left" in attempt.run.sentence
    assert not carrying(MARK, str(folder.path))

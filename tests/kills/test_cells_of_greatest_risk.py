"""Those cells of the kill matrix that fit beside the other tests, through its own command; the rest is run by hand."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MATRIX = Path(__file__).with_name("matrix.py")
CELLS = (
    ("supervisor", "warm start"),
    ("generator", "generation"),
    ("node agent", "update"),
    ("Postgres", "checkpoint"),
    ("vantage up", "weight sync"),
    ("Valkey", "evaluation"),
    ("trainer", "checkpoint"),
)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the command tells of them, all on one run."""
    file = tmp_path_factory.mktemp("kills") / "told.json"
    cells = ",".join(f"{victim}:{phase}" for victim, phase in CELLS)
    command = [sys.executable, str(MATRIX), "--cells", cells, "--no-hardships", "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1500)
    assert file.exists(), done.stdout + done.stderr
    return json.loads(file.read_text()) | {"code": done.returncode, "text": done.stdout}


@pytest.mark.engine
@pytest.mark.parametrize(("victim", "phase"), CELLS)
def test_a_run_goes_on_after_a_kill(told: dict[str, Any], victim: str, phase: str) -> None:
    [cell] = [one for one in told["cells"] if (one["victim"], one["phase"]) == (victim, phase)]
    assert cell["faults"] == [] and cell["recovery"] is not None


@pytest.mark.engine
def test_the_killed_run_ends_well_with_never_two_trainers_and_nothing_left(told: dict[str, Any]) -> None:
    assert told["cells"][-1]["faults"] == [] and told["overlaps"] == []
    assert told["code"] == 0, told["text"]

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from vantage_trainer.tiny import make_tiny

SCRIPT = Path(__file__).parent / "gradients_of_ranks.py"
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


@pytest.mark.engine
@pytest.mark.parametrize("launcher", [[], TORCHRUN], ids=["1 rank", "2 ranks"])
def test_every_zero_stage_takes_the_step_that_autograd_takes(tmp_path: Path, launcher: list[str]) -> None:
    """Gradients (read from Adam's first moment) and their norm, for 1 to 8 uneven responses with a clip active.

    The critic's too, in an engine beside the policy's.
    """
    model = make_tiny(tmp_path / "tiny")
    done = subprocess.run(
        [sys.executable, *launcher, str(SCRIPT), str(model)],
        capture_output=True,
        text=True,
        timeout=400,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("REPORT ")]
    assert lines, done.stderr[-3000:]
    report = json.loads(lines[0].removeprefix("REPORT "))
    assert set(report) == {"0", "1", "2", "3"}
    for stage, cases in report.items():
        for num, errors in cases.items():
            assert errors["gradient"] < 1e-5, (stage, num)
            assert errors["norm"] < 1e-5, (stage, num)
            assert errors["steps"] == 1, (stage, num)
            assert errors["moved"] < 1e-3, (stage, num)
            assert errors["critic gradient"] < 1e-5, (stage, num)
            assert errors["critic norm"] < 1e-5, (stage, num)
            assert errors["critic value"] < 1e-5, (stage, num)

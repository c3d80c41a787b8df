"""Print how far DeepSpeed's gradients are from plain autograd: `python tests/benchmarks/partition.py`.

One optimizer step on 1, 2, 5 and 8 uneven responses, one to eight micro-batches, for every ZeRO stage on one and two
ranks, of the policy and of the critic; figures are the largest error over the largest gradient, in float32.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from vantage_trainer.tiny import make_tiny

SCRIPT = Path(__file__).parents[1] / "trainer" / "gradients_of_ranks.py"
LAUNCHERS = {1: [], 2: ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]}


def report(num_ranks: int, model: Path) -> dict[str, dict[str, dict[str, float]]]:
    """Run the comparison over this many ranks. -> stage -> responses -> errors"""
    command = [sys.executable, *LAUNCHERS[num_ranks], str(SCRIPT), str(model)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    lines = [line for line in done.stdout.splitlines() if line.startswith("REPORT ")]
    if not lines:
        sys.exit(done.stderr[-2000:])
    return json.loads(lines[0].removeprefix("REPORT "))


def main() -> None:
    print("| ranks | ZeRO | policy gradient | its norm | critic gradient | its norm |")
    print("| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        model = make_tiny(Path(folder) / "tiny")
        for num_ranks in LAUNCHERS:
            for stage, cases in report(num_ranks, model).items():
                names = ("gradient", "norm", "critic gradient", "critic norm")
                worst = [max(errors[name] for errors in cases.values()) for name in names]
                print(f"| {num_ranks} | {stage} | " + " | ".join(f"{value:.1e}" for value in worst) + " |", flush=True)


if __name__ == "__main__":
    main()

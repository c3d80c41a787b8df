"""Start both engines once: `python -m vantage_trainer.first_start`, at the end of an installation.

One small run proves that they work on this machine, in a sentence if not, and leaves their modules compiled for every
later start (about 30 s of processor time the first time).
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from vantage_trainer import demo, recipes
from vantage_trainer.spec import Budget, Checkpoint, Evaluation, RunSpec, WarmStart


def main() -> int:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="vantage-first-start-") as folder:
        code, sentence = try_run(Path(folder))
        if code == 0:
            print(f"vLLM and DeepSpeed work: one step of GRPO after {time.monotonic() - began:.0f} s.", flush=True)
            return 0
        print(f"The engines do not work on this machine: {sentence}", file=sys.stderr)
        print(_last_lines(Path(folder)), file=sys.stderr, flush=True)
        return 1


def try_run(folder: Path) -> tuple[int, str]:
    """Train one step of the demo; returns the exit status and the sentence it ended with."""
    demo.write(folder)
    (folder / "spec.json").write_text(one_step().model_dump_json())
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-m", "vantage_trainer.train", str(folder), "--attempt", "1"]
    status = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL).returncode
    end = folder / "attempts" / "1" / "exit.json"
    return status, json.loads(end.read_text())["sentence"] if end.exists() else f"the trainer ended with {status}."


def one_step() -> RunSpec:
    return recipes.demo_spec().model_copy(
        update={
            "warm_start": WarmStart(steps=1, batch=4),
            "evaluation": Evaluation(),
            "checkpoint": Checkpoint(every_steps=0),
            "budget": Budget(steps=1),
        }
    )


def _last_lines(folder: Path) -> str:
    logs = [path for path in folder.glob("attempts/1/*.log") if path.stat().st_size]
    return "\n".join(path.read_text(errors="replace")[-2000:] for path in logs)


if __name__ == "__main__":
    sys.exit(main())

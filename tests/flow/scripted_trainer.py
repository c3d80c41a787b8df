"""A trainer without engines, for tests of what stands around one. $SCRIPT is JSON: steps, pause, every, end."""

import argparse
import fcntl
import json
import os
import sys
import time
from pathlib import Path

SCRIPT = {"steps": 20, "pause": 0.05, "every": 5, "end": "succeeded"} | json.loads(os.environ.get("SCRIPT", "{}"))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--attempt", type=int, required=True)
    arguments = parser.parse_args()
    lock = (arguments.folder / "trainer.lock").open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return 3
    return Script(arguments.folder, arguments.folder / "attempts" / str(arguments.attempt)).run()


class Script:
    def __init__(self, folder: Path, attempt: Path) -> None:
        self.folder, self.attempt = folder, attempt
        (attempt / "journal").mkdir(parents=True, exist_ok=True)
        self.files = {name: (attempt / "journal" / f"{name}.jsonl").open("a") for name in ("metrics", "events")}
        self.seqs = dict.fromkeys(self.files, 0)

    def run(self) -> int:
        print("GPUs:", os.environ.get("CUDA_VISIBLE_DEVICES", "not said"))
        print("secrets:", sorted({"DATABASE_URL", "BROKER_URL", "VANTAGE_SECRET_KEY"} & os.environ.keys()), flush=True)
        self.write("events", 0, kind="phase", data={"name": "loading", "progress": None})
        step = self.resume()
        while step < SCRIPT["steps"]:
            step += 1
            time.sleep(SCRIPT["pause"])
            self.write("metrics", step, values={"reward/mean": step / 100})
            if SCRIPT["end"] == "die" and step == SCRIPT["steps"] // 2:
                print("Traceback (most recent call last):\n  File x\nRuntimeError: out of luck", flush=True)
                return 1
            if (self.attempt / "stop").exists():
                self.checkpoint(step)
                return self.leave("stopped", step)
            if step % SCRIPT["every"] == 0:
                self.checkpoint(step)
        return self.leave("succeeded", step)

    def resume(self) -> int:
        """Go on from the newest checkpoint that is not marked as damaged, and say from which."""
        found = sorted(path for path in self.folder.glob("checkpoints/step-*") if not (path / "damaged").exists())
        step = int(found[-1].name.removeprefix("step-")) if found else None
        if found or self.attempt.name != "1":
            name = f"checkpoints/{found[-1].name}" if found else None
            self.write("events", step or 0, kind="resumed", data={"from_step": step, "stage": "rl", "checkpoint": name})
        if not found and (self.folder / "parent" / "fork.json").exists():
            told = json.loads((self.folder / "parent" / "fork.json").read_text())
            weights = (self.folder / "parent" / told["checkpoint"] / "weights").read_text()
            self.write("events", 0, kind="forked", data=told | {"weights": weights})
        return step or 0

    def checkpoint(self, step: int) -> None:
        folder = self.folder / "checkpoints" / f"step-{step:06d}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "weights").write_text(f"of step {step}")
        self.write(
            "events", step, kind="checkpoint", data={"step": step, "folder": f"checkpoints/{folder.name}", "bytes": 1}
        )

    def leave(self, outcome: str, step: int) -> int:
        end = {"outcome": outcome, "code": "scripted", "sentence": "As written.", "step": step, "time": time.time()}
        (self.attempt / "exit.json").write_text(json.dumps(end))
        return 0

    def write(self, name: str, step: int, **content: object) -> None:
        self.seqs[name] += 1
        line = {"seq": self.seqs[name], "time": time.time(), "step": step} | content
        self.files[name].write(json.dumps(line) + "\n")
        self.files[name].flush()


if __name__ == "__main__":
    sys.exit(main())

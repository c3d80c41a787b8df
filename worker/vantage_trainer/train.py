"""Run one attempt: `python -m vantage_trainer.train RUN_FOLDER --attempt N`. It meets the world in its run folder.

Nothing heavy is imported before the lock is held and the environment says how many threads there may be.
"""

import argparse
import fcntl
import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import IO, TYPE_CHECKING

from pydantic import ValidationError

from vantage_trainer import ranks
from vantage_trainer.failure import Failure, explained
from vantage_trainer.journal import Journal
from vantage_trainer.refusals import explain, refusals
from vantage_trainer.spec import RunSpec
from vantage_trainer.stopping import Stop, Stopped
from vantage_trainer.text_files import read_text

if TYPE_CHECKING:
    from vantage_trainer.run import Run

UNUSABLE, LOCKED = 2, 3
THREADS = {"OMP_WAIT_POLICY": "PASSIVE", "KMP_BLOCKTIME": "0", "TOKENIZERS_PARALLELISM": "false"}
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}


def main() -> int:
    arguments = _arguments()
    for name, value in THREADS.items():
        os.environ.setdefault(name, value)
    ranks.follow_parent()
    if ranks.rank() > 0:
        return _follow(arguments.run_folder)
    folder, place = arguments.run_folder, arguments.run_folder / "attempts" / str(arguments.attempt)
    try:
        lock = _lock(folder)
        if lock is None:
            print("Another trainer is working on this run, so this one ends.", file=sys.stderr)
            return LOCKED
        place.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        print(f"{folder} cannot be used as a run folder ({fault.strerror}): check the path.", file=sys.stderr)
        return UNUSABLE
    with lock:
        return _conduct(folder, place, lock)


def _conduct(folder: Path, place: Path, lock: IO[str]) -> int:
    """Live one attempt and write how it ended."""
    console = _log_to(place / "trainer.log")
    run: Run | None = None
    journal, stop = None, Stop(place / "stop")
    try:
        stop.watch()
        spec = read_spec(folder)
        if spec.resources.training_devices > 1 and "TORCHELASTIC_RUN_ID" not in os.environ:
            lock.close()
            ranks.launch(spec.resources.training_devices)
        journal = Journal(place / "journal")
        run = _prepared(folder, place, spec, journal, stop)
        outcome, code, sentence = _lived(run)
    except Stopped:
        outcome, code, sentence = "stopped", "stopped", "The run was stopped before its first step."
    except BaseException as fault:  # whatever it is, the run's end must be written and told in a sentence
        traceback.print_exc()
        outcome, (code, sentence) = "failed", explained(fault)
    step = run.progress.step if run is not None and run.progress.stage == "rl" else 0
    _write_end(place, {"outcome": outcome, "code": code, "sentence": sentence, "step": step, "time": time.time()})
    print(sentence, file=console, flush=True)
    _let_go(run, journal, stop, in_step=outcome != "failed")
    return 1 if outcome == "failed" else 0


def _lived(run: "Run") -> tuple[str, str, str]:
    """Train to the end, or to the wish to stop; either way the last finished step is kept."""
    from vantage_trainer.loop import train
    from vantage_trainer.warm_start import warm_start

    try:
        warm_start(run)
        train(run)
    except Stopped:
        run.save()
        where = "step" if run.progress.stage == "rl" else "warm-start step"
        return "stopped", "stopped", f"The run was stopped after {where} {run.progress.step} and can be resumed."
    run.save()
    run.phase("finished")
    return "succeeded", "finished", f"The run finished its {run.progress.step} steps."


def _prepared(folder: Path, place: Path, spec: RunSpec, journal: Journal, stop: Stop) -> "Run":
    from vantage_trainer.cpu import check_cpu
    from vantage_trainer.prepare import prepare

    check_cpu()
    refused = refusals(spec)
    if refused:
        raise Failure(refused[0].code, refused[0].sentence)
    ranks.prepare_environment()
    return prepare(folder, place, spec, journal, stop)


def _follow(folder: Path) -> int:
    """Live as a rank that does what rank 0 says."""
    from vantage_trainer.policy import Policy
    from vantage_trainer.prepare import model_folder

    spec = read_spec(folder)
    Policy(model_folder(folder, spec), spec).follow()
    return 0


def read_spec(folder: Path) -> RunSpec:
    try:
        return RunSpec.model_validate_json(read_text(folder / "spec.json", "bad_spec"))
    except FileNotFoundError:
        raise Failure("no_spec", f"There is no spec.json in {folder}: this is not a run folder.") from None
    except ValidationError as fault:
        raise Failure(
            "bad_spec", explain(fault)[0].sentence.replace("This is not JSON", "spec.json is not JSON")
        ) from None


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m vantage_trainer.train", description="Train one run.")
    parser.add_argument("run_folder", type=lambda text: Path(text).resolve(), help="folder with spec.json and data/")
    parser.add_argument("--attempt", type=int, default=1, help="number of this attempt")
    return parser.parse_args()


def _lock(folder: Path) -> IO[str] | None:
    """Take the run's lock, which no child inherits; None when somebody has it."""
    lock = (folder / "trainer.lock").open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock


def _log_to(path: Path) -> IO[str]:
    """Send everything that is printed to the log; returns where it went before."""
    console = os.fdopen(os.dup(1), "w")
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(handle, stream)
    os.close(handle)
    return console


def _write_end(place: Path, content: dict[str, object]) -> None:
    draft = place / ".exit.json"
    try:
        draft.write_text(json.dumps(content))
        os.replace(draft, place / "exit.json")
    except OSError:  # a full disk may be why the run ends; the sentence still goes to the console
        traceback.print_exc()


def _let_go(run: "Run | None", journal: Journal | None, stop: Stop, *, in_step: bool) -> None:
    """End what the run started; ranks that may be amid something together are ended by their launcher."""
    stop.close()
    if run is not None:
        run.generator.close()
    if run is not None and in_step:
        run.policy.close()
    if journal is not None:
        journal.close()


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # engines leave threads behind that would keep the process

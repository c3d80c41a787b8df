"""Run one attempt: `python -m vantage_trainer.train RUN_FOLDER --attempt N`. It meets the world in its run folder.

Nothing heavy is imported before the lock is held and the environment says how many threads there may be.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from vantage_trainer import attempt, ranks
from vantage_trainer.attempt import STOPPED, SUCCEEDED, Attempt, Told
from vantage_trainer.failure import Failure
from vantage_trainer.refusals import explain, refusals
from vantage_trainer.spec import RunSpec
from vantage_trainer.stopping import Stopped
from vantage_trainer.text_files import read_text

if TYPE_CHECKING:
    from vantage_trainer.run import Run


def main() -> int:
    folder, number = attempt.arguments("vantage_trainer.train", "Train one run.")
    attempt.set_threads()
    ranks.follow_parent()
    if ranks.rank() > 0:
        return _follow(folder)
    return attempt.live(folder, number, _work, nothing_done="The run was stopped before its first step.")


def _work(ours: Attempt) -> Told:
    """Train, on as many ranks as the spec says."""
    spec = read_spec(ours.folder)
    if spec.resources.training_devices > 1 and "TORCHELASTIC_RUN_ID" not in os.environ:
        ours.lock.close()
        ranks.launch(spec.resources.training_devices)
    run = _prepared(ours, spec)
    ours.step = lambda: run.progress.step if run.progress.stage == "rl" else 0
    ours.let_go = lambda failed: _let_go(run, failed)
    return _lived(run)


def _lived(run: "Run") -> Told:
    """Train to the end, or to the wish to stop; either way the last finished step is kept."""
    from vantage_trainer.loop import train
    from vantage_trainer.warm_start import warm_start

    try:
        warm_start(run)
        train(run)
    except Stopped:
        run.save()
        where = "step" if run.progress.stage == "rl" else "warm-start step"
        return Told(STOPPED, "stopped", f"The run was stopped after {where} {run.progress.step} and can be resumed.")
    run.save()
    run.phase("finished")
    return Told(SUCCEEDED, "finished", f"The run finished its {run.progress.step} steps.")


def _prepared(ours: Attempt, spec: RunSpec) -> "Run":
    from vantage_trainer.cpu import check_cpu
    from vantage_trainer.prepare import prepare

    journal = ours.open_journal()
    check_cpu()
    refused = refusals(spec)
    if refused:
        raise Failure(refused[0].code, refused[0].sentence)
    ranks.prepare_environment()
    return prepare(ours.folder, ours.place, spec, journal, ours.stop)


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


def _let_go(run: "Run", failed: bool) -> None:
    """End what the run started; ranks that may be amid something together are ended by their launcher."""
    run.generator.close()
    if not failed:
        run.policy.close()


if __name__ == "__main__":
    attempt.leave(main())

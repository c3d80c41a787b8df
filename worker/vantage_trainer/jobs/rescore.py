"""Apply an edited reward to the stored completions of a run: what each step would have been given. No model is loaded.

data/samples.jsonl holds the completions in the order of the run, one a line, each with the answer it was compared with.
"""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue

from vantage_trainer.failure import Failure
from vantage_trainer.jobs.regrading import Regraded, Regrader, Stored
from vantage_trainer.jobspec import RescoreSpec

if TYPE_CHECKING:
    from vantage_trainer.job import Job

FILE = "samples.jsonl"


def run(job: "Job") -> str:
    """Score every stored completion again, step by step; returns the sentence of success."""
    path = job.folder / "data" / FILE
    total = _count(path)
    if not total:
        raise Failure("no_samples", "The run has stored no completion yet, so there is nothing to score again.")
    assert isinstance(job.spec, RescoreSpec)
    regrader = Regrader(job.spec.run, job.spec.reward)
    whole: Regraded | None = None
    for number, samples in itertools.groupby(stored(path), lambda sample: sample.step):
        job.stop.check()
        step = regrader.step(number, list(samples))
        whole = step if whole is None else whole + step
        job.journal.metrics(number, step.metrics())
        job.journal.phase(number, "scoring", int(whole.sums["num"]), total)
    assert whole is not None, "there is at least one completion"
    changes: list[JsonValue] = [change.told() for change in whole.changes]
    job.result({"num": whole.sums["num"], **whole.figures(), "changes": changes})
    return whole.sentence()


def stored(path: Path) -> Iterator[Stored]:
    """Read the completions one after the other."""
    with path.open(encoding="ascii") as file:
        for line in file:
            yield Stored(**json.loads(line))


def _count(path: Path) -> int:
    """Count the completions; Failure when there is no file."""
    try:
        with path.open("rb") as file:
            return sum(1 for _ in file)
    except FileNotFoundError:
        raise Failure("no_data", f"The completions are missing from the job's folder (data/{FILE}).") from None

"""Do one job that trains nothing: `python -m vantage_trainer.job RUN_FOLDER --attempt N`.

Each kind is a module of jobs/ with `run(job) -> str`: the sentence of success. It raises Failure, or Stopped when asked
to end; a later attempt begins anew. What it finds travels as journal lines; files to download lie in output/.
"""

import importlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue, ValidationError

from vantage_trainer import attempt
from vantage_trainer.attempt import SUCCEEDED, Attempt, Told
from vantage_trainer.explained import explained
from vantage_trainer.failure import Failure
from vantage_trainer.jobspec import JobFile, JobSpec
from vantage_trainer.journal import Journal
from vantage_trainer.stopping import Stop
from vantage_trainer.text_files import read_text

FILE = "job.json"
MOST_BYTES = 64_000  # of one result
MODULES = {"import": "import_"}  # kinds whose names Python keeps for itself


@dataclass
class Job:
    """What a kind works with."""

    folder: Path
    place: Path
    spec: JobSpec
    journal: Journal
    stop: Stop
    parent: Path | None = None
    checkpoint: Path | None = None
    closing: list[Callable[[], None]] = field(default_factory=list)  # called at the end, whatever it is

    @property
    def models(self) -> Path:
        """The folder whose models are used: the parent's, which holds them already, where there is one."""
        return self.parent if self.parent is not None and self.parent.is_dir() else self.folder

    def phase(self, name: str, done: int | None = None, total: int | None = None) -> None:
        self.journal.phase(0, name, done, total)

    def result(self, content: dict[str, JsonValue]) -> None:
        """Tell a part of the result; what is larger is told in several."""
        assert len(json.dumps(content)) <= MOST_BYTES, "a result is one journal line: tell it in parts"
        self.journal.event(0, "result", content)

    def fresh_output(self) -> Path:
        """Return the folder for files, emptied of what an earlier attempt left."""
        output = self.folder / "output"
        shutil.rmtree(output, ignore_errors=True)
        output.mkdir()
        return output


def main() -> int:
    folder, number = attempt.arguments("vantage_trainer.job", "Do one job.")
    attempt.set_threads()
    return attempt.live(folder, number, _work, nothing_done="The job was stopped before its end.")


def _work(ours: Attempt) -> Told:
    told = read_job(ours.folder)
    job = Job(ours.folder, ours.place, told.spec, ours.open_journal(), ours.stop, _path(told.parent))
    job.checkpoint = _path(told.checkpoint)
    ours.let_go = lambda failed: _close(job)
    job.phase("loading")
    sentence = module_of(told.spec.kind).run(job)
    job.phase("finished")
    if job.checkpoint is not None:
        shutil.rmtree(job.checkpoint, ignore_errors=True)
    return Told(SUCCEEDED, "finished", sentence)


def module_of(kind: str) -> "Kind":
    """Import what does this kind of job; Failure when this version has none."""
    name = f"vantage_trainer.jobs.{MODULES.get(kind, kind)}"
    try:
        found: Kind = importlib.import_module(name)  # type: ignore[assignment]
    except ModuleNotFoundError as fault:
        if fault.name != name:
            raise
        raise Failure("unavailable", f"This version cannot do a job of the kind {kind}.") from None
    return found


class Kind:
    """What a module of jobs/ has."""

    run: Callable[[Job], str]


def read_job(folder: Path) -> JobFile:
    try:
        return JobFile.model_validate_json(read_text(folder / FILE, "bad_spec"))
    except FileNotFoundError:
        raise Failure("no_spec", f"There is no {FILE} in {folder}: this is not a job's folder.") from None
    except ValidationError as fault:
        raise Failure("bad_spec", explained(fault, JobFile)[0].sentence.replace("This is", f"{FILE} is")) from None


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)


def _close(job: Job) -> None:
    for close in reversed(job.closing):
        close()


if __name__ == "__main__":
    attempt.leave(main())

"""The frame of a job: what stands in its folder, what it tells, how it ends. No engine."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from vantage_trainer.failure import Failure
from vantage_trainer.job import Job, read_job
from vantage_trainer.jobspec import ExportSpec, JobFile
from vantage_trainer.journal import Journal
from vantage_trainer.stopping import Stop


def ended(folder: Path, attempt: int = 1) -> dict[str, object]:
    command = [sys.executable, "-m", "vantage_trainer.job", str(folder), "--attempt", str(attempt)]
    subprocess.run(command, capture_output=True, check=False)
    return json.loads((folder / "attempts" / str(attempt) / "exit.json").read_text())


def test_a_folder_without_a_job_ends_in_a_sentence(tmp_path: Path) -> None:
    told = ended(tmp_path)
    assert (told["outcome"], told["code"]) == ("failed", "no_spec") and "no job.json" in str(told["sentence"])


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"spec": {"kind": "dance"}}', "must be one of"),
        ("{", "job.json is not JSON"),
        ('{"spec": {"kind": "export", "checkpoint": "../../etc"}}', "Checkpoint"),
    ],
)
def test_a_job_that_cannot_be_read_says_why(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "job.json").write_text(content)
    with pytest.raises(Failure, match=says):
        read_job(tmp_path)


def test_a_result_is_one_line_of_the_journal_and_output_begins_empty(tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text(JobFile(spec=ExportSpec()).model_dump_json())
    job = Job(tmp_path, tmp_path, read_job(tmp_path).spec, Journal(tmp_path / "journal"), Stop(tmp_path / "stop"))
    job.result({"size": 7})
    [line] = (tmp_path / "journal" / "events.jsonl").read_text().splitlines()
    assert json.loads(line)["kind"] == "result" and json.loads(line)["data"] == {"size": 7}
    with pytest.raises(AssertionError):
        job.result({"text": "x" * 70_000})
    (job.fresh_output() / "half").write_text("written by an earlier attempt")
    assert not list(job.fresh_output().iterdir())

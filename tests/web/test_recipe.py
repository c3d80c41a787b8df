"""The recipe smollm2 uploads its problem sets as the site does, and queues its run on them."""

import json
from pathlib import Path
from typing import Any

import pytest
from vantage.cli import _parser
from vantage.datasets.models import DatasetVersion
from vantage.recipe_files import files_of
from vantage.runs.models import Run
from vantage.runs.recipe import queue_smollm2, shared
from vantage_trainer.recipes import SMOLLM2_FILES, smollm2_spec
from vantage_trainer.refusals import refusals
from vantage_trainer.spec import RunSpec

CONTENT: dict[str, list[dict[str, object]]] = {
    "gsm8k_train.jsonl": [{"question": "Half of 48?", "answer": "48/2 = <<48/2=24>>24\n#### 24"}],
    "mawps_singleop.jsonl": [{"input": "7 and 7?", "target": 14.0}, {"input": "7 and 7?", "target": 14.0}],
    "mawps_multiarith.jsonl": [{"input": "1 and 2 and 3?", "target": 6}],
    "mawps_addsub.jsonl": [{"input": "9 less 2 ?", "target": 7.0}],
}


@pytest.fixture
def folder(tmp_path: Path, settings: Any) -> Path:
    settings.HOME = tmp_path / "home"
    for name, rows in CONTENT.items():
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def options(*given: str) -> dict[str, Path]:
    return files_of(_parser().parse_args(["recipe", "smollm2", *given]))


def test_it_is_queued_on_what_was_uploaded(people: Any, folder: Path) -> None:
    run = queue_smollm2(people.team, people.member, options("--folder", str(folder)))
    spec = RunSpec.model_validate(run.spec)
    assert refusals(spec) == []
    assert (run.status, spec.data.train, spec.data.more[0].dataset) == (
        "queued",
        "mawps-single-op@1",
        "mawps-multi-arith@1",
    )
    assert spec.warm_start is not None and spec.warm_start.dataset == "gsm8k-train@1"
    assert set(run.datasets) == {"train", "train+2", "train+start", "add-sub"}
    imitated = DatasetVersion.objects.get(pk=run.datasets["train+start"]).rows.get()
    assert (imitated.answer, imitated.solution) == ("24", "48/2 = 24")
    assert DatasetVersion.objects.get(pk=run.datasets["train"]).source["left_out"] == {"duplicate": 1}


def test_what_training_shares_with_the_held_out_problems_is_told(people: Any, folder: Path) -> None:
    run = queue_smollm2(people.team, people.member, options("--folder", str(folder)))
    assert shared(run) == [
        "Of the 1 held-out problems of mawps-add-sub@1, training holds none, not even with other numbers."
    ]
    (folder / "mawps_addsub.jsonl").write_text('{"input": "7 AND 7 ?", "target": 14}\n')
    [sentence] = shared(queue_smollm2(people.team, people.member, options("--folder", str(folder))))
    assert sentence.endswith("training holds 1 but for case, spacing and punctuation (row 1).")


def test_a_second_time_it_uses_the_same_datasets(people: Any, folder: Path) -> None:
    runs = [queue_smollm2(people.team, people.member, options("--folder", str(folder))) for _ in range(2)]
    assert runs[0].datasets == runs[1].datasets and Run.objects.count() == 2


def test_each_file_can_be_named(folder: Path) -> None:
    named = [text for file in SMOLLM2_FILES for text in (f"--{file.option}", str(folder / file.usual))]
    assert options(*named) == options("--folder", str(folder))
    with pytest.raises(ValueError, match="--multi-arith, --add-sub"):
        options(*named[:4])


def test_a_file_that_is_not_there_is_told(people: Any, folder: Path) -> None:
    (folder / "mawps_addsub.jsonl").unlink()
    with pytest.raises(ValueError, match="mawps_addsub.jsonl cannot be read"):
        queue_smollm2(people.team, people.member, options("--folder", str(folder)))
    assert not Run.objects.exists()


def test_a_file_without_a_usable_record_is_told(people: Any, folder: Path) -> None:
    (folder / "mawps_addsub.jsonl").write_text('{"input": "", "target": 1}\n')
    with pytest.raises(ValueError, match="No record of .*mawps_addsub.jsonl can be used"):
        queue_smollm2(people.team, people.member, options("--folder", str(folder)))


def test_the_recipe_is_a_run_that_nothing_speaks_against() -> None:
    assert refusals(smollm2_spec()) == []

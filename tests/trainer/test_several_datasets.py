"""A run may ask the problems of several datasets and imitate the solutions of another."""

import json
from pathlib import Path
from typing import Any

import pytest
from vantage_trainer.data import Problem
from vantage_trainer.data_files import data_files, file_of, id_in, imitated_file, training_files
from vantage_trainer.journal import Journal
from vantage_trainer.prepare import training_problems
from vantage_trainer.refusals import refusals
from vantage_trainer.spec import Data, Evaluation, EvaluationSet, RunSpec, TrainingSet, WarmStart
from vantage_trainer.warm_start import solutions


class Letters:
    eos_token_id = 0

    def __call__(self, text: str, *, add_special_tokens: bool = True) -> dict[str, list[int]]:
        return {"input_ids": [ord(letter) for letter in text]}

    def decode(self, ids: list[int], *, skip_special_tokens: bool = False) -> str:
        return "".join(map(chr, ids))

    def apply_chat_template(self, messages: list[dict[str, str]], **options: Any) -> str:
        raise AssertionError


def spec() -> RunSpec:
    return RunSpec(
        data=Data(train="a@1", more=[TrainingSet(dataset="b@2"), TrainingSet(dataset="c@1")]),
        warm_start=WarmStart(dataset="worked@1"),
        evaluation=Evaluation(sets=[EvaluationSet(name="train-2", dataset="held@1")]),
    )


def test_every_dataset_has_a_file_of_its_own() -> None:
    assert data_files(spec()) == {
        "train": "a@1",
        "train+2": "b@2",
        "train+3": "c@1",
        "train+start": "worked@1",
        "train-2": "held@1",
    }
    assert imitated_file(RunSpec(data=Data(train="a@1"), warm_start=WarmStart())) == {}


@pytest.mark.parametrize("file", list(training_files(spec())))
def test_a_problem_tells_its_file_and_row(file: str) -> None:
    assert file_of(id_in(file, "17")) == (file, "17")


def test_rows_of_all_files_are_asked_and_only_the_warm_starts_own_imitated(tmp_path: Path) -> None:
    for name, prompt in {"train": "a", "train+2": "b", "train+3": "c", "train+start": "d"}.items():
        row = {"id": "1", "prompt": prompt, "answer": "7", "solution": "s"}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    journal = Journal(tmp_path / "journal")
    problems, imitated = training_problems(tmp_path, spec(), Letters(), journal)
    assert [(one.id, one.prompt) for one in problems] == [("1", "a"), ("2:1", "b"), ("3:1", "c")]
    assert [one.prompt for one in imitated] == ["d"]
    alone = spec().model_copy(update={"warm_start": WarmStart()})
    assert training_problems(tmp_path, alone, Letters(), journal)[1] == problems
    journal.close()


def test_a_solution_gets_the_ending_with_its_answer_and_may_be_too_long() -> None:
    written = [Problem("1", "q", [1], "7", "3+4"), Problem("2", "q", [1], "8", "1+1+6"), Problem("3", "q", [1], "9")]
    settings = WarmStart(ending="\n#### {answer}", solution_limit=11)
    texts = [Letters().decode(one.response_ids) for one in solutions(written, Letters(), settings)]
    assert texts == ["3+4\n#### 7\0"]
    assert len(solutions(written, Letters(), WarmStart())) == 2


@pytest.mark.parametrize(("more", "code"), [("", "no_training_data"), ("a@1", "trained_on_twice")])
def test_a_further_dataset_must_be_another_one(more: str, code: str) -> None:
    asked = RunSpec(data=Data(train="a@1", more=[TrainingSet(dataset=more)]))
    assert [(one.code, one.path) for one in refusals(asked)] == [(code, "data.more.0.dataset")]

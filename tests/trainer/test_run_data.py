import json
from pathlib import Path
from typing import Any

import pytest
from vantage_trainer.data import Cursor, Problem, load
from vantage_trainer.failure import Failure
from vantage_trainer.spec import Data, Model


class Letters:
    """A tokenizer with one token per character."""

    eos_token_id = 0

    def __call__(self, text: str, *, add_special_tokens: bool = True) -> dict[str, list[int]]:
        return {"input_ids": [1] * add_special_tokens + [ord(letter) for letter in text]}

    def decode(self, ids: list[int], *, skip_special_tokens: bool = False) -> str:
        return "".join(map(chr, ids))

    def apply_chat_template(self, messages: list[dict[str, str]], **options: Any) -> str:
        return "".join(f"<{message['role']}>{message['content']}" for message in messages)


def write(path: Path, rows: list[object]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def row(name: str, prompt: str, **more: object) -> dict[str, object]:
    return {"id": name, "prompt": prompt, "answer": "1", **more}


def test_a_prompt_at_the_limit_is_kept_and_one_over_it_refuses_the_run_by_name(tmp_path: Path) -> None:
    path = write(tmp_path / "train.jsonl", [row("fits", "abc"), row("over", "abcd"), row("far over", "a" * 16)])
    with pytest.raises(Failure, match=r"2 rows .* limit of 4 tokens \(over, far over\)"):
        load(path, "train", Model(), Data(prompt_limit=4), Letters())


def test_prompts_over_the_limit_are_dropped_and_told_when_asked(tmp_path: Path) -> None:
    path = write(tmp_path / "train.jsonl", [row("fits", "abc"), row("over", "abcd")])
    problems, dropped = load(path, "train", Model(), Data(prompt_limit=4, over_limit="drop"), Letters())
    assert [problem.id for problem in problems] == ["fits"] and dropped == ["over"]


def test_nothing_left_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "train.jsonl", [row("over", "abcd")])
    with pytest.raises(Failure, match="No row of the dataset train is left"):
        load(path, "train", Model(), Data(prompt_limit=2, over_limit="drop"), Letters())


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "has no rows"),
        ("\n\n", "has no rows"),
        ("{\n", "Line 1 .* is not JSON"),
        ("[1]\n", "Line 1 .* has no prompt"),
        ('{"prompt": "", "answer": "1"}\n', "has no prompt"),
        ('{"id": "x", "prompt": "a"}\n', "Row x .* has no answer"),
        ('{"id": "x", "prompt": "a", "answer": null}\n', "Row x .* has no answer"),
        ('{"prompt": 5, "answer": "1"}\n', "Row 1's prompt is not text"),
        ('{"prompt": "a", "answer": "1", "solution": 5}\n', "Row 1's solution is not text"),
        ('{"messages": "hi", "answer": "1"}\n', "Row 1's messages are not a list"),
        ("[" * 100_000, "Line 1 .* is nested too deeply"),
    ],
)
def test_a_broken_file_gets_a_sentence_that_names_the_place(tmp_path: Path, content: str, sentence: str) -> None:
    (tmp_path / "train.jsonl").write_text(content)
    with pytest.raises(Failure, match=sentence):
        load(tmp_path / "train.jsonl", "train", Model(), Data(), Letters())


def test_a_file_that_is_not_utf8_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_bytes(b'{"prompt": "a", "answer": "1"}\n{"prompt": "\xe9", "answer": "1"}\n')
    with pytest.raises(Failure, match="Line 2 of train.jsonl is not UTF-8"):
        load(tmp_path / "train.jsonl", "train", Model(), Data(), Letters())


def test_a_chat_template_that_fails_on_a_row_is_named(tmp_path: Path) -> None:
    class Failing(Letters):
        def apply_chat_template(self, messages: list[dict[str, str]], **options: Any) -> str:
            raise TypeError("can only concatenate str")

    path = write(tmp_path / "train.jsonl", [row("a", "hi")])
    with pytest.raises(Failure, match="The chat template fails on row a: can only concatenate str"):
        load(path, "train", Model(system_prompt="be brief"), Data(), Failing())


def test_a_missing_file_gets_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="is missing from the run folder"):
        load(tmp_path / "train.jsonl", "train", Model(), Data(), Letters())


def test_the_system_prompt_and_the_chat_template_count_towards_the_prompt(tmp_path: Path) -> None:
    path = write(tmp_path / "train.jsonl", [row("a", "hi")])
    [problem], _ = load(path, "train", Model(system_prompt="be brief"), Data(), Letters())
    assert problem.prompt == "<system>be brief<user>hi"
    assert len(problem.prompt_ids) == len(problem.prompt)


def test_a_model_with_a_chat_template_is_asked_through_it(tmp_path: Path) -> None:
    class Chat(Letters):
        chat_template = "its own"

    path = write(tmp_path / "train.jsonl", [row("1", "abc")])
    [asked], _ = load(path, "train", Model(), Data(), Chat())
    assert asked.prompt == "<user>abc"


def test_text_that_utf8_cannot_hold_is_still_asked(tmp_path: Path) -> None:
    path = write(tmp_path / "train.jsonl", [row("a", "x\ud800y\x00")])
    [problem], _ = load(path, "train", Model(), Data(), Letters())
    assert problem.prompt == "x?y\x00"


def problems(num: int) -> list[Problem]:
    return [Problem(str(index), "", [1], "") for index in range(num)]


def test_each_epoch_serves_every_row_once_in_another_order() -> None:
    cursor = Cursor(problems(10), seed=1)
    epochs = [[problem.id for problem in cursor.take(10)] for _ in range(3)]
    assert all(sorted(epoch) == sorted(epochs[0]) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3


def test_a_cursor_put_at_a_position_goes_on_as_if_it_had_never_stopped() -> None:
    whole = [problem.id for problem in Cursor(problems(10), seed=1).take(25)]
    first = Cursor(problems(10), seed=1)
    started = [problem.id for problem in first.take(8)]
    rest = [problem.id for problem in Cursor(problems(10), seed=1, position=first.position).take(17)]
    assert started + rest == whole


def test_retired_rows_are_passed_over_in_this_and_every_later_epoch() -> None:
    whole = [problem.id for problem in Cursor(problems(10), seed=1).take(30)]
    cursor = Cursor(problems(10), seed=1, retired=["3", "7"])
    assert [problem.id for problem in cursor.take(24)] == [name for name in whole if name not in ("3", "7")]
    assert cursor.position <= 30


def test_a_resumed_cursor_passes_over_the_same_rows() -> None:
    first = Cursor(problems(10), seed=1, retired=["3"])
    begun = first.take(7)
    second = Cursor(problems(10), seed=1, position=first.position, retired=["3"])
    assert begun + second.take(9) == Cursor(problems(10), seed=1, retired=["3"]).take(16)

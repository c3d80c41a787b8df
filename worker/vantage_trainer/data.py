"""Rows of a run's datasets: read, checked, tokenised, and served in shuffled epochs from a cursor."""

import json
import random
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from vantage_trainer.failure import Failure
from vantage_trainer.spec import Data, Model
from vantage_trainer.text_files import read_text

SHOWN = 5


@dataclass(frozen=True)
class Problem:
    """One row, ready to be asked: its prompt in tokens, its expected answer, and a solution where there is one."""

    id: str
    prompt: str
    prompt_ids: list[int]
    answer: str
    solution: str = ""


class Tokenizer(Protocol):
    """What is used of a Hugging Face tokenizer."""

    eos_token_id: int

    def __call__(self, text: str, *, add_special_tokens: bool = True) -> Any: ...

    def decode(self, ids: list[int], *, skip_special_tokens: bool = False) -> str: ...

    def apply_chat_template(self, messages: list[dict[str, str]], **options: Any) -> Any: ...


def load(path: Path, name: str, model: Model, data: Data, tokenizer: Tokenizer) -> tuple[list[Problem], list[str]]:
    """Read a dataset's rows; returns the problems and the ids of those dropped for their length."""
    problems = [_problem(row, name, model, tokenizer) for row in read_rows(path, name)]
    long = [problem.id for problem in problems if len(problem.prompt_ids) > data.prompt_limit]
    if long and data.over_limit == "refuse":
        raise Failure("prompt_too_long", _too_long(name, long, data.prompt_limit))
    kept = [problem for problem in problems if len(problem.prompt_ids) <= data.prompt_limit]
    if not kept:
        raise Failure("no_rows", f"No row of the dataset {name} is left under the prompt limit of {data.prompt_limit}.")
    return kept, long


def read_rows(path: Path, name: str) -> list[dict[str, Any]]:
    """Read JSON lines; a broken one is named by its number."""
    if not path.exists():
        raise Failure("no_data", f"The dataset {name} is missing from the run folder (data/{path.name}).")
    lines = read_text(path, "bad_data", "surrogatepass").split("\n")
    rows = [_row(line, number, name) for number, line in enumerate(lines, start=1) if line.strip()]
    if not rows:
        raise Failure("no_rows", f"The dataset {name} has no rows: add some, or choose another dataset.")
    return rows


def _row(line: str, number: int, name: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as fault:
        raise Failure("bad_data", f"Line {number} of the dataset {name} is not JSON: {fault.msg}.") from None
    except RecursionError:
        raise Failure("bad_data", f"Line {number} of the dataset {name} is nested too deeply: flatten it.") from None
    if not isinstance(row, dict) or not (row.get("prompt") or row.get("messages")):
        raise Failure("bad_data", f"Line {number} of the dataset {name} has no prompt.")
    if not isinstance(row.get("answer"), str):
        raise Failure("bad_data", f"Row {row.get('id', number)} of the dataset {name} has no answer.")
    row = {"id": str(number), **row}
    if wrong := _wrong(row):
        raise Failure("bad_data", f"Row {row['id']}'s {wrong}; correct it in the dataset {name}.")
    return row


def _wrong(row: dict[str, Any]) -> str:
    """Name the first part of a row that is of another kind than it ought to be."""
    messages = row.get("messages") or []
    if not isinstance(messages, list) or not all(isinstance(one, dict) and "role" in one for one in messages):
        return "messages are not a list of groups with role and content"
    parts = {"prompt": "" if messages else row["prompt"], "solution": row.get("solution") or ""}
    return next((f"{part} is not text" for part, value in parts.items() if not isinstance(value, str)), "")


def _problem(row: dict[str, Any], name: str, model: Model, tokenizer: Tokenizer) -> Problem:
    text, ids = asked(row, model, tokenizer)
    if not ids:
        raise Failure("bad_data", f"Row {row['id']} of the dataset {name} has an empty prompt.")
    return Problem(str(row["id"]), text, ids, row["answer"], row.get("solution") or "")


def asked(row: dict[str, Any], model: Model, tokenizer: Tokenizer) -> tuple[str, list[int]]:
    """Return a row's prompt as text and as tokens, through the chat template where the run or the model has one."""
    own = getattr(tokenizer, "chat_template", None)  # what the model was trained to be asked through
    if not (row.get("messages") or model.system_prompt or model.chat_template or own):
        text = encodable(row["prompt"])
        return text, list(tokenizer(text)["input_ids"])
    messages = row.get("messages") or [{"role": "user", "content": row["prompt"]}]
    if model.system_prompt:
        messages = [{"role": "system", "content": model.system_prompt}, *messages]
    try:
        text = tokenizer.apply_chat_template(
            messages, chat_template=model.chat_template, tokenize=False, add_generation_prompt=True
        )
    except Exception as fault:  # a template is a program of the run's owner, and may fail in any way
        raise Failure("bad_chat_template", f"The chat template fails on row {row['id']}: {fault}") from None
    text = encodable(text)
    return text, list(tokenizer(text, add_special_tokens=False)["input_ids"])


def encodable(text: str) -> str:
    """Replace what UTF-8 cannot hold (lone surrogates), since tokenizers read nothing else."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _too_long(name: str, ids: list[str], limit: int) -> str:
    more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
    return (
        f"{len(ids)} rows of the dataset {name} have prompts over the limit of {limit} tokens "
        f"({', '.join(ids[:SHOWN])}{more}): raise the prompt limit, or choose to drop them."
    )


class Cursor:
    """Serve problems in shuffled epochs; position and retired ones say what comes next, and both can be stored."""

    def __init__(
        self, problems: list[Problem], seed: int, position: int = 0, retired: Collection[str] = frozenset()
    ) -> None:
        self._problems = problems
        self._retired = frozenset(retired)
        self._seed = seed
        self._order: tuple[int, list[int]] = (-1, [])
        self.position = position

    def take(self, num: int) -> list[Problem]:
        """Return the next `num` problems but retired ones, going on into the next epoch where one ends."""
        assert any(problem.id not in self._retired for problem in self._problems), "no problem is left"
        taken: list[Problem] = []
        while len(taken) < num:
            problem = self._at(self.position)
            self.position += 1
            taken += [] if problem.id in self._retired else [problem]
        return taken

    def _at(self, position: int) -> Problem:
        epoch, place = divmod(position, len(self._problems))
        if self._order[0] != epoch:
            order = list(range(len(self._problems)))
            random.Random(f"shuffle {self._seed} {epoch}").shuffle(order)
            self._order = (epoch, order)
        return self._problems[self._order[1][place]]

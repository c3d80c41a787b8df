"""Which columns of a file are the prompt, the answer and the worked solution."""

import re
from collections.abc import Iterable, Sequence
from itertools import islice

from pydantic import BaseModel, ConfigDict
from vantage_trainer.spec import setting

from vantage.datasets.problems import NewRow, Problem
from vantage.datasets.reading import Record, Written
from vantage.stored import Json

MARK = "####"
CALCULATOR = re.compile(r"<<[^<>\n]*>>")
SAMPLE = 100
PROMPT_NAMES = ["prompt", "question", "problem", "input", "instruction", "query"]
ANSWER_NAMES = ["answer", "target", "final_answer", "label", "output", "expected", "result", "solution"]
SOLUTION_NAMES = ["solution", "rationale", "reasoning", "explanation", "worked_solution", "cot"]


class Columns(BaseModel):
    model_config = ConfigDict(extra="forbid")

    prompt: str = setting("", "Prompt")
    prompt_end: str | None = setting(None, "Prompt, second part", "Joined to the first by a space")
    answer: str = setting("", "Answer")
    answer_after: str | None = setting(None, "Answer stands after", "Text before this mark becomes the solution: ####")
    solution: str | None = setting(None, "Worked solution", "What a warm start imitates")
    drop_calculator: bool = setting(
        False, "Leave out calculator marks", "<<48/2=24>> in worked solutions, as GSM8K has"
    )


def names(records: Iterable[Record]) -> list[str]:
    """The columns of the first records, in the order they appear."""
    return list(dict.fromkeys(name for record in islice(records, SAMPLE) for name in record.columns))


def guess(records: Sequence[Record]) -> Columns:
    """The likely mapping; SVAMP's Body and Question are joined, GSM8K's answer is split at ####."""
    columns = names(records)
    lower = {name.lower(): name for name in reversed(columns)}
    prompt = first(lower, PROMPT_NAMES, columns)
    body = lower.get("body") if prompt and prompt.lower() == "question" else None
    answer = first(lower, ANSWER_NAMES, [name for name in columns if name != prompt])
    solution = next((lower[name] for name in SOLUTION_NAMES if name in lower and lower[name] != answer), None)
    marked = [MARK in str(record.columns.get(answer, "")) for record in records if record.columns]
    written = [str(record.columns.get(solution or answer, "")) for record in records]
    return Columns(
        prompt=body or prompt,
        prompt_end=prompt if body else None,
        answer=answer,
        answer_after=MARK if marked and sum(marked) >= 0.9 * len(marked) else None,
        solution=None if any(marked) else solution,
        drop_calculator=any(CALCULATOR.search(text) for text in written),
    )


def first(lower: dict[str, str], wanted: Sequence[str], otherwise: Sequence[str]) -> str:
    """The column with a wanted name, or with a nested one, or the first there is."""
    for name in wanted:
        nested = (column for key, column in lower.items() if key.endswith(f".{name}"))
        found = lower.get(name) or next(nested, None)
        if found:
            return found
    return otherwise[0] if otherwise else ""


def row(record: Record, columns: Columns) -> NewRow | Problem:
    """Make a row of a record, or say what is wrong with it."""
    if record.fault:
        return Problem("unreadable", record.place, record.fault)
    parts = [text(record.columns.get(name)) for name in (columns.prompt, columns.prompt_end) if name]
    answer = text(record.columns.get(columns.answer))
    solution = text(record.columns.get(columns.solution)) if columns.solution else ""
    if None in parts or answer is None or solution is None:
        wrong = next(n for n in used(columns) if text(record.columns.get(n)) is None)
        return Problem("type", record.place, f"has a {kind(record.columns[wrong])} in “{wrong}” where text is needed.")
    prompt = " ".join(part for part in parts if part)
    if columns.answer_after:
        before, mark, after = answer.rpartition(columns.answer_after)
        if not mark:
            return Problem("answer", record.place, f"has no “{columns.answer_after}” in its answer.")
        solution, answer = solution or before.rstrip(), after
    if columns.drop_calculator:
        solution = CALCULATOR.sub("", solution)
    if not prompt.strip():
        return Problem("prompt", record.place, "has an empty prompt.")
    if not answer.strip():
        return Problem("answer", record.place, "has no answer.")
    return NewRow(prompt, answer.strip(), solution, rest(record, columns), kind(record.columns.get(columns.answer)))


def used(columns: Columns) -> list[str]:
    return [name for name in (columns.prompt, columns.prompt_end, columns.answer, columns.solution) if name]


def rest(record: Record, columns: Columns) -> dict[str, Json]:
    """The columns that play no part, kept beside the row."""
    return {name: value for name, value in record.columns.items() if name not in used(columns) and value is not None}


def text(value: Json) -> str | None:
    """A value as text, numbers as they were written; None for what is no text: lists, objects, true and false."""
    if value is None:
        return ""
    if isinstance(value, bool | list | dict):
        return None
    return value.text if isinstance(value, Written) else str(value)


def kind(value: Json) -> str:
    words = {bool: "true or false", list: "list", dict: "object", str: "text", int: "number", Written: "number"}
    return words.get(type(value), "number" if isinstance(value, float) else "nothing")

"""Answer questions about algorithms: `python -m vantage_trainer.asked`, one JSON object a line in and out.

In: {"id": 1, "ask": "curves", "algorithm": {...}, "group_size": 8, "response_limit": 64}, or "objective" with "inputs".
Out: first {"ready": true}, once torch is loaded; then {"id": 1, "answer": {...}} or {"id": 1, "refusal": "a sentence"}.
It ends with its standard input: when the process that asks dies, so does this one.
"""

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from pydantic import JsonValue, ValidationError

from vantage_trainer.composition import Algorithm
from vantage_trainer.refusals import composition_refusals, explain

LONGEST_LINE = 8 * 2**20  # characters of one question
UNAVAILABLE = 3  # exit code where there is no torch
Question = dict[str, Any]  # anything that JSON holds


def curves(algorithm: Algorithm, question: Question) -> JsonValue:
    from vantage_trainer.curves import curves

    return curves(algorithm, whole(question, "group_size"), whole(question, "response_limit"))


def objective(algorithm: Algorithm, question: Question) -> JsonValue:
    from vantage_trainer.objective import inspect

    inputs = question.get("inputs")
    if not isinstance(inputs, dict):
        raise ValueError("The question needs inputs, a batch.")
    return inspect(algorithm, inputs, whole(question, "response_limit"))


ANSWERS: dict[str, Callable[[Algorithm, Question], JsonValue]] = {"curves": curves, "objective": objective}


def whole(question: Question, name: str) -> int:
    value = question.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{name} must be a whole number; it is {value!r}.")
    return value


def answer(question: Question) -> JsonValue:
    """Compute what is asked; raises ValueError with a sentence."""
    try:
        algorithm = Algorithm.model_validate(question.get("algorithm"))
    except ValidationError as error:
        raise ValueError(" ".join(refusal.sentence for refusal in explain(error, Algorithm))) from error
    if refusals := composition_refusals(algorithm):
        raise ValueError(" ".join(refusal.sentence for refusal in refusals))
    asked = ANSWERS.get(str(question.get("ask")))
    if asked is None:
        raise ValueError(f"ask must be one of {', '.join(ANSWERS)}.")
    return asked(algorithm, question)


def said(line: str) -> dict[str, JsonValue]:
    """One answer to one line; a fault in the mathematics is told and ends nothing."""
    try:
        question = json.loads(line)
        if not isinstance(question, dict):
            raise ValueError("A question is one JSON object.")
    except ValueError as error:
        return {"id": None, "refusal": str(error)}
    name = question.get("id")
    try:
        return {"id": name, "answer": answer(question)}
    except ValueError as error:
        return {"id": name, "refusal": str(error)}
    except Exception as fault:  # the next question deserves its answer all the same
        return {"id": name, "refusal": f"This could not be computed ({type(fault).__name__}: {fault})."}


def lines(given: TextIO) -> Iterator[str]:
    """Whole lines; one that is too long is cut, and then no JSON."""
    while line := given.readline(LONGEST_LINE):
        yield line
        while not line.endswith("\n") and (line := given.readline(LONGEST_LINE)):
            pass


def tell(out: TextIO, content: dict[str, JsonValue]) -> None:
    print(json.dumps(content), file=out, flush=True)


def main() -> int:
    try:
        import torch
    except ImportError:
        return UNAVAILABLE
    torch.set_num_threads(1)
    tell(sys.stdout, {"ready": True})
    for line in lines(sys.stdin):
        tell(sys.stdout, said(line))
    return 0


if __name__ == "__main__":
    sys.exit(main())

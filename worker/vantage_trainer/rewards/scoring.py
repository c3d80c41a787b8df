"""Score a completion with all parts of a run's reward; what cannot be scored is None with its cause, never 0."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Real

from pydantic import BaseModel, ValidationError

from vantage_trainer.rewards import exact, numeric
from vantage_trainer.spec import Reward, RewardPart


@dataclass(frozen=True)
class Kind:
    """A verifier: the schema of its parameters and a function (parameters, text, answer) -> score."""

    parameters: type[BaseModel]
    score: Callable[..., float]


KINDS = {"exact": Kind(exact.Parameters, exact.score), "numeric": Kind(numeric.Parameters, numeric.score)}


@dataclass(frozen=True)
class Score:
    """The weighted sum before shaping, or None and the cause; `parts` holds each part before its weight.

    `seconds` is what each part's call took.
    """

    reward: float | None
    parts: dict[str, float | None]
    correct: bool | None
    cause: str = ""
    seconds: dict[str, float] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class _Part:
    name: str
    weight: float
    kind: Kind
    parameters: BaseModel


class Scorer:
    """The reward of one run, its parameters checked once."""

    def __init__(self, reward: Reward) -> None:
        self._parts = [_part(part, name) for part, name in zip(reward.parts, part_names(reward.parts), strict=True)]
        self._threshold = reward.correct_threshold

    def score(self, text: str, answer: str) -> Score:
        parts: dict[str, float | None] = {}
        seconds: dict[str, float] = {}
        causes = []
        for part in self._parts:
            began = time.perf_counter()
            parts[part.name], cause = _attempt(part, text, answer)
            seconds[part.name] = time.perf_counter() - began
            causes += [f"{part.name}: {cause}"] if cause else []
        if causes:
            return Score(None, parts, None, "; ".join(causes), seconds)
        total = sum(part.weight * (parts[part.name] or 0.0) for part in self._parts)
        return Score(total, parts, total >= self._threshold, seconds=seconds)


def part_names(parts: list[RewardPart]) -> list[str]:
    """Name each part by its kind, numbered where a kind comes twice: numeric, numeric-2."""
    kinds = [part.kind for part in parts]
    nth = [kinds[: i + 1].count(kind) for i, kind in enumerate(kinds)]
    return [kind if n == 1 else f"{kind}-{n}" for kind, n in zip(kinds, nth, strict=True)]


def _part(part: RewardPart, name: str) -> _Part:
    kind = KINDS[part.kind]
    try:
        return _Part(name, part.weight, kind, kind.parameters.model_validate(part.parameters))
    except ValidationError as fault:
        first = fault.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(f"The reward part {name} does not accept its parameter {place}: {first['msg']}.") from None


def _attempt(part: _Part, text: str, answer: str) -> tuple[float | None, str]:
    """Run one verifier; any fault of it is the sample's, not the run's."""
    try:
        value = part.kind.score(part.parameters, text, answer)
    except Exception as fault:  # a verifier may be anyone's code: its fault makes this sample unscorable
        return None, f"{fault}"[:300]
    if not isinstance(value, Real):  # a text that looks like a number is a mistake too
        return None, f"the score was {value!r}"[:300] + ", not a number"
    return (float(value), "") if math.isfinite(value) else (None, f"the score was {value}")

"""What two attempts computed twice, compared to the bit: pure, on values that were read elsewhere."""

import math
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel

Stage = Literal["warm_start", "rl"]
Place = tuple[Stage, int, str]  # stage, step, metric
STAGES: tuple[Stage, ...] = ("warm_start", "rl")
MOST_SHOWN = 50  # differences that are kept, of however many there are


class Difference(BaseModel):
    """One thing that came out otherwise; None: the attempt did not report it."""

    stage: Stage
    step: int
    what: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Answers:
    """How many completions of a step each side told, how many stand on both, and how many of those differ."""

    step: int
    num_before: int
    num_after: int
    num_common: int
    num_differing: int


class Repeat(BaseModel):
    """What an attempt computed again that earlier ones had computed past the checkpoint it went on from."""

    attempts: list[int]
    steps: list[int] = []  # first and last; empty: none
    warm_steps: list[int] = []
    num_metrics: int = 0
    num_values: int = 0
    num_completions: int = 0
    num_differences: int = 0
    differences: list[Difference] = []

    @property
    def is_checked(self) -> bool:
        return self.num_values + self.num_completions > 0

    @property
    def is_identical(self) -> bool:
        return self.is_checked and not self.num_differences


def compare(
    attempts: Iterable[int],
    before: Mapping[Place, float],
    after: Mapping[Place, float],
    answers: Iterable[Answers] = (),
    examples: Iterable[Difference] = (),
) -> Repeat:
    """Compare what stands at the same places, and count what only one side tells of steps that both went past."""
    answers, ends = list(answers), _ends(before, after)
    common = before.keys() & after.keys()
    alone = {place for place in before.keys() ^ after.keys() if place[1] < ends[place[0]]}
    differing = [place for place in sorted(common | alone) if not _same(before.get(place), after.get(place))]
    counts = list(_miscounted(answers, ends["rl"]))
    repeated = {place[:2] for place in common if _was_a_step(place)} | {
        ("rl", one.step) for one in answers if one.num_common
    }
    return Repeat(
        attempts=sorted(set(attempts)),
        steps=_span(step for stage, step in repeated if stage == "rl"),
        warm_steps=_span(step for stage, step in repeated if stage == "warm_start"),
        num_metrics=len({name for _, _, name in common}),
        num_values=len(common),
        num_completions=sum(one.num_common for one in answers),
        num_differences=len(differing) + len(counts) + sum(one.num_differing for one in answers),
        differences=[*(_difference(place, before, after) for place in differing), *counts, *examples][:MOST_SHOWN],
    )


def _ends(before: Mapping[Place, float], after: Mapping[Place, float]) -> dict[Stage, int]:
    """Return for each stage the last step that both sides told of: there, one of them may have been amid it."""
    return {
        stage: min(max((step for one, step, _ in side if one == stage), default=0) for side in (before, after))
        for stage in STAGES
    }


def _same(one: float | None, other: float | None) -> bool:
    """Compare bits; every NaN is the same one, for a journal writes them all alike."""
    if one is None or other is None:
        return False
    return (math.isnan(one) and math.isnan(other)) or struct.pack("<d", one) == struct.pack("<d", other)


def _difference(place: Place, before: Mapping[Place, float], after: Mapping[Place, float]) -> Difference:
    stage, step, what = place
    values = [None if (value := side.get(place)) is None else repr(value) for side in (before, after)]
    return Difference(stage=stage, step=step, what=what, before=values[0], after=values[1])


def _miscounted(answers: list[Answers], end: int) -> Iterator[Difference]:
    for one in answers:
        if one.step < end and not one.num_before == one.num_after == one.num_common:
            numbers = {"before": str(one.num_before), "after": str(one.num_after)}
            yield Difference(stage="rl", step=one.step, what="number of completions", **numbers)


def _was_a_step(place: Place) -> bool:
    """An evaluation is made up for where it was interrupted, at a step that was not computed again."""
    return not place[2].startswith("eval/")


def _span(steps: Iterable[int]) -> list[int]:
    found = sorted(set(steps))
    return [found[0], found[-1]] if found else []

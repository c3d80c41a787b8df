"""Samples of a run as people read them: by step, by group, the long ones folded."""

import math
from collections import Counter
from dataclasses import dataclass
from typing import Self

from django.db.models import QuerySet, TextField
from django.db.models.functions import Left, Length
from django.http import QueryDict

from vantage.runs.models import Run, Sample

FOLD_AFTER = 1200  # characters of a completion shown at once
GROUPS_PER_PAGE = 12
BINS = 12
FILTERS: dict[str, dict[str, bool | str | None]] = {
    "correct": {"correct": True},
    "wrong": {"correct": False},
    "cut": {"finish": "length"},
    "unscored": {"reward": None},
}


@dataclass(frozen=True)
class SampleWish:
    """Which samples: of a step (the newest by default), of a kind, holding a text."""

    step: int | None
    only: str
    text: str
    page: int

    @classmethod
    def of(cls, query: QueryDict) -> Self:
        step, page = query.get("step", ""), query.get("page", "1")
        return cls(
            int(step) if step.isdigit() and len(step) < 10 else None,
            query.get("only", "") if query.get("only", "") in FILTERS else "",
            query.get("q", ""),
            int(page) if page.isdigit() and len(page) < 8 else 1,
        )


@dataclass(frozen=True)
class Bin:
    """One bar of the reward histogram, in the units of its SVG."""

    low: float
    high: float
    count: int
    x: float
    y: float
    width: float
    height: float


def steps_of(run: Run) -> list[int]:
    """Steps that have samples, by a loose scan of the index."""
    return list(Sample.objects.filter(run=run).order_by("step").values_list("step", flat=True).distinct())


def samples_of(run: Run, step: int, wish: SampleWish) -> QuerySet[Sample]:
    """Samples of a step from the newest attempt that has it."""
    rows = Sample.objects.filter(run=run, step=step)
    attempt = rows.order_by("-attempt").values_list("attempt", flat=True).first()
    rows = rows.filter(**{"attempt": attempt} | FILTERS.get(wish.only, {}))
    return rows.filter(text__icontains=wish.text) if wish.text else rows


@dataclass(frozen=True)
class Group:
    """A prompt and the answers sampled for it."""

    number: int
    prompt: str
    prompt_id: str
    samples: list[Sample]

    @property
    def mean(self) -> float | None:
        rewards = [one.reward for one in self.samples if one.reward is not None and math.isfinite(one.reward)]
        return sum(rewards) / len(rewards) if rewards else None

    @property
    def num_correct(self) -> int:
        return sum(one.correct is True for one in self.samples)


def groups_of(samples: QuerySet[Sample], page: int) -> tuple[list[Group], int]:
    """One page of groups, and how many pages there are."""
    numbers = list(samples.order_by("group").values_list("group", flat=True).distinct())
    num_pages = max(1, math.ceil(len(numbers) / GROUPS_PER_PAGE))
    page = min(max(page, 1), num_pages)
    wanted = numbers[(page - 1) * GROUPS_PER_PAGE : page * GROUPS_PER_PAGE]
    by_group: dict[int, list[Sample]] = {number: [] for number in wanted}
    for sample in beginnings(samples.filter(group__in=wanted)).order_by("group", "index", "seq"):
        by_group[sample.group].append(sample)
    return [Group(n, rows[0].prompt, rows[0].prompt_id, rows) for n, rows in by_group.items()], num_pages


def beginnings(samples: QuerySet[Sample]) -> QuerySet[Sample]:
    """Read only the start of each text, `start`, and its length, `num_chars`: a completion may be megabytes."""
    cut = Left("text", FOLD_AFTER, output_field=TextField())
    return samples.annotate(start=cut, num_chars=Length("text")).defer("text", "tokens")


def histogram(samples: QuerySet[Sample], width: float, height: float) -> list[Bin]:
    """Rewards of the samples in bars of equal width, for an SVG of this size."""
    rewards = [
        value for value in samples.values_list("reward", flat=True) if value is not None and math.isfinite(value)
    ]
    if not rewards:
        return []
    low, high = min(rewards), max(rewards)
    step = (high / BINS - low / BINS) or 1.0
    counts = Counter(min(BINS - 1, int((value - low) / step)) for value in rewards)
    most, num = max(counts.values()), BINS if high > low else 1
    tall = [counts[n] / most * height for n in range(num)]
    return [
        Bin(
            low + n * step, low + (n + 1) * step, counts[n], n * width / num, height - tall[n], width / num - 1, tall[n]
        )
        for n in range(num)
    ]

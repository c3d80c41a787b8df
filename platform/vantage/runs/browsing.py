"""Samples of a run as people read them: by step, by group, the long ones folded."""

import math
from collections import Counter
from dataclasses import dataclass
from typing import Self

from django.db.models import QuerySet, TextField
from django.db.models.functions import Left, Length
from django.http import QueryDict
from vantage_trainer.data_files import file_of, id_in

from vantage.datasets.models import Row
from vantage.numbers import whole
from vantage.runs.models import Run, Sample
from vantage.runs.states import Kind
from vantage.text import storable

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
            whole(step, 2**31 - 1),
            query.get("only", "") if query.get("only", "") in FILTERS else "",
            query.get("q", ""),
            whole(page, 10**7) or 1,
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


def samples_of(run: Run, step: int) -> QuerySet[Sample]:
    """All samples of a step from the newest attempt that has it."""
    rows = Sample.objects.filter(run=run, step=step)
    return rows.filter(attempt=rows.order_by("-attempt").values_list("attempt", flat=True).first())


def wished(samples: QuerySet[Sample], wish: SampleWish) -> QuerySet[Sample]:
    rows = samples.filter(**FILTERS.get(wish.only, {}))
    return rows.filter(text__icontains=storable(wish.text)) if wish.text else rows


@dataclass(frozen=True)
class Whole:
    """What is true of all answers to a prompt, whichever of them are shown."""

    rewards: list[float | None]
    num_correct: int

    @property
    def num(self) -> int:
        return len(self.rewards)

    @property
    def mean(self) -> float | None:
        scored = [reward for reward in self.rewards if reward is not None and math.isfinite(reward)]
        return sum(scored) / len(scored) if scored else None


@dataclass(frozen=True)
class Group:
    """A prompt, the answer it expects where that is known, and the answers sampled for it."""

    number: int
    samples: list[Sample]
    whole: Whole
    expected: str | None

    @property
    def prompt(self) -> str:
        return self.samples[0].prompt

    @property
    def prompt_id(self) -> str:
        return self.samples[0].prompt_id

    @property
    def num_hidden(self) -> int:
        return self.whole.num - len(self.samples)


def groups_of(samples: QuerySet[Sample], all_of_step: QuerySet[Sample], page: int) -> tuple[list[Group], int]:
    """One page of groups that have one of the samples, and how many pages there are."""
    numbers = list(samples.order_by("group").values_list("group", flat=True).distinct())
    num_pages = max(1, math.ceil(len(numbers) / GROUPS_PER_PAGE))
    page = min(max(page, 1), num_pages)
    wanted = numbers[(page - 1) * GROUPS_PER_PAGE : page * GROUPS_PER_PAGE]
    by_group: dict[int, list[Sample]] = {number: [] for number in wanted}
    for sample in beginnings(samples.filter(group__in=wanted)).order_by("group", "index", "seq"):
        by_group[sample.group].append(sample)
    wholes, answers = _wholes(all_of_step.filter(group__in=wanted)), _expected(by_group)
    groups = [Group(n, rows, wholes[n], answers.get(rows[0].prompt_id)) for n, rows in by_group.items()]
    return groups, num_pages


def _wholes(samples: QuerySet[Sample]) -> dict[int, Whole]:
    rows: dict[int, list[tuple[float | None, bool | None]]] = {}
    for group, reward, correct in samples.values_list("group", "reward", "correct"):
        rows.setdefault(group, []).append((reward, correct))
    return {
        group: Whole([reward for reward, _ in found], sum(correct is True for _, correct in found))
        for group, found in rows.items()
    }


def _expected(by_group: dict[int, list[Sample]]) -> dict[str, str]:
    """The answers in the training datasets, by prompt id: it tells the dataset and the row's number."""
    firsts = [rows[0] for rows in by_group.values()]
    if not firsts:
        return {}
    versions = _versions(Run.objects.get(pk=firsts[0].run_id), firsts[0].step)
    by_file: dict[str, list[int]] = {}
    for file, row in {file_of(one.prompt_id) for one in firsts}:
        if (number := whole(row, 2**31 - 1)) is not None:
            by_file.setdefault(file, []).append(number)
    return {
        id_in(file, str(number)): answer
        for file, numbers in by_file.items()
        for number, answer in _answers(versions.get(file), numbers)
    }


def _answers(version: int | None, numbers: list[int]) -> QuerySet:
    return Row.objects.filter(version=version, number__in=numbers).values_list("number", "answer")


def _versions(run: Run, step: int) -> dict[str, int]:
    """The dataset version of each file that prompts come from; the steps of an evaluation count its sets."""
    if run.kind != Kind.EVALUATE:
        return run.datasets
    names = [one["name"] for one in run.spec.get("sets", [])]
    version = run.datasets.get(names[step]) if step < len(names) else None
    return {"train": version} if version else {}


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

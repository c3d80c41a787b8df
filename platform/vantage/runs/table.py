"""The table of runs: filtered, sorted and cut into pages in Postgres, so that 10,000 runs stay quick."""

import math
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Self

from django.core.paginator import Page, Paginator
from django.db.models import F, Func, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, Now
from django.http import QueryDict

from vantage.algorithms.labels import labels
from vantage.numbers import whole
from vantage.runs.latest import Point, newest
from vantage.runs.models import Attempt, MetricKey, MetricRow, Run
from vantage.runs.spark import Spark, spark
from vantage.runs.states import ACTIVE, Kind, Status
from vantage.text import storable

PER_PAGE = 50
MOST_PAGES = 10**7
SPARK_POINTS = 40
SORTS = ("name", "status", "created", "duration", "reward", "pass")
REWARD = "reward/mean"
WARM_LOSS = "warm_start/loss"


@dataclass(frozen=True)
class Wish:
    """What a reader asks of the table; the address holds all of it."""

    text: str = ""
    status: str = ""
    tag: str = ""
    sort: str = "created"
    descending: bool = True
    page: int = 1

    @classmethod
    def of(cls, query: QueryDict) -> Self:
        sort = query.get("sort", "-created")
        key = sort.removeprefix("-")
        status = query.get("status", "")
        page = query.get("page", "1")
        return cls(
            query.get("q", "").strip(),
            status if status in (*Status.values, "active") else "",
            query.get("tag", "").strip(),
            key if key in SORTS else "created",
            sort.startswith("-") or key not in SORTS,
            whole(page, MOST_PAGES) or 1,
        )

    @property
    def is_narrowed(self) -> bool:
        return bool(self.text or self.status or self.tag)


@dataclass(frozen=True)
class Stage:
    """How far a stage is that counts its own steps."""

    step: int
    steps: int


@dataclass(frozen=True)
class Line:
    """One run as the table shows it; `warm` while it is in its warm start."""

    run: Run
    step: int
    steps: int
    warm: Stage | None
    reward: Point | None
    passed: Point | None
    low: Point | None
    high: Point | None
    spark: Spark | None
    algorithm: str

    @property
    def share(self) -> float:
        return min(1.0, self.step / self.steps) if self.steps else 0.0

    @property
    def model(self) -> str:
        return str((self.run.spec.get("model") or {}).get("name", ""))

    @property
    def is_active(self) -> bool:
        return self.run.status in ACTIVE

    @property
    def until(self) -> datetime | None:
        return self.run.ended

    @property
    def seconds(self) -> float | None:
        """How long it took, for a run that has ended."""
        if self.run.started is None or self.run.ended is None:
            return None
        return (self.run.ended - self.run.started).total_seconds()


def page_of(runs: QuerySet[Run], wish: Wish) -> tuple[Page, list[Line]]:
    """Return one page of the wished runs and its lines, in five queries however many runs there are."""
    page = Paginator(ordered(narrowed(runs, wish), wish), PER_PAGE).get_page(wish.page)
    return page, lines(list(page.object_list))


def narrowed(runs: QuerySet[Run], wish: Wish) -> QuerySet[Run]:
    if wish.text:
        runs = runs.filter(matching(wish.text))
    if wish.status:
        runs = runs.filter(status__in=ACTIVE if wish.status == "active" else [wish.status])
    return runs.filter(tags__contains=[storable(wish.tag)]) if wish.tag else runs


def matching(text: str) -> Q:
    """Names, notes, tags and algorithms that hold the text, and the run of this number; #5 is only a number."""
    bare = text.removeprefix("#")
    meant = whole(bare, 2**31 - 1)
    number = Q() if meant is None else Q(number=meant)
    if number and text.startswith("#"):
        return number
    own = Q(spec__algorithm__preset=None) if text.lower() == "own" else Q()
    words = ("name", "notes", "tags", "preset")
    return reduce(or_, (Q(**{f"{word}__icontains": storable(text)}) for word in words), number | own)


def ordered(runs: QuerySet[Run], wish: Wish) -> QuerySet[Run]:
    """Sort by a column; what has no value, or none that can be compared, comes last either way."""
    if wish.sort in ("reward", "pass"):
        keys = list(keys_like(wish.sort).values_list("pk", flat=True))
        rows = MetricRow.objects.filter(run=OuterRef("pk"), attempt=OuterRef("attempt"), key__in=keys)
        value = Func(Subquery(rows.order_by("-step", "-seq").values("value")[:1]), Value(math.nan), function="NULLIF")
        runs = runs.annotate(sorted_by=value)
    elif wish.sort == "duration":
        runs = runs.annotate(sorted_by=Coalesce(F("ended"), Now()) - F("started"))
    else:  # never null: plainly ordered, so that Postgres reads a page off the index
        return runs.order_by(f"{'-' if wish.descending else ''}{wish.sort}", "-pk")
    place = F("sorted_by")
    direction = place.desc(nulls_last=True) if wish.descending else place.asc(nulls_last=True)
    return runs.order_by(direction, "-pk")


def keys_like(sort: str) -> QuerySet[MetricKey]:
    if sort == "reward":
        return MetricKey.objects.filter(name=REWARD)
    return MetricKey.objects.filter(name__startswith="eval/", name__endswith="/pass@1")


def lines(runs: list[Run]) -> list[Line]:
    """Add to each run its progress, newest reward, and newest held-out pass@1 with interval and history."""
    sets = {run.pk: first_set(run.spec) for run in runs}
    ends = [(pk, f"eval/{name}/{end}") for pk, name in sets.items() if name for end in ("low", "high")]
    last = newest([(run.pk, key) for run in runs for key in (REWARD, WARM_LOSS)] + ends)
    passes = newest([(pk, f"eval/{name}/pass@1") for pk, name in sets.items() if name], SPARK_POINTS)
    steps = dict(Attempt.objects.filter(run__in=runs, number=F("run__attempt")).values_list("run", "step"))
    named = labels([(run.team_id, run.spec.get("algorithm") or {}) for run in runs])
    return [
        _line(run, sets[run.pk], last, passes, steps.get(run.pk, 0), name)
        for run, name in zip(runs, named, strict=True)
    ]


def first_set(spec: dict) -> str:
    sets = (spec.get("evaluation") or {}).get("sets") or []
    return str(sets[0].get("name", "")) if sets else ""


def _line(run: Run, held_out: str, last: dict, passes: dict, step: int, algorithm: str) -> Line:
    history = passes.get((run.pk, f"eval/{held_out}/pass@1"), [])

    def point(key: str) -> Point | None:
        return last.get((run.pk, key), [None])[-1]

    return Line(
        run,
        step,
        int((run.spec.get("budget") or {}).get("steps") or 0),
        None if step or point(REWARD) else warm_start_of(run, point(WARM_LOSS)),
        point(REWARD),
        history[-1] if history else None,
        point(f"eval/{held_out}/low"),
        point(f"eval/{held_out}/high"),
        spark([(one.step, one.value) for one in history]),
        algorithm,
    )


def warm_start_of(run: Run, last: Point | None) -> Stage | None:
    """The warm start of a run that has one and is not through it."""
    if run.kind != Kind.TRAIN:  # a dry run only says whether it shall have one
        return None
    steps = int((run.spec.get("warm_start") or {}).get("steps") or 0)
    done = last.step if last else 0
    return Stage(done, steps) if done < steps else None

"""How long runs will still take, told by what they, or else the team's runs of the same shape, have reported."""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Max
from django.utils import timezone
from vantage_trainer.spec import RunSpec

from vantage.runs.folder import STEPS
from vantage.runs.latest import Point, newest
from vantage.runs.models import Attempt, Checkpoint, Run
from vantage.runs.states import Kind
from vantage.runs.table import WARM_LOSS

POINTS = 20  # newest steps whose pace counts
STEP, EVALUATION, TOKENS = "time/step", "time/evaluate", "tokens/generated"
MOST_EARLIER = 100  # earlier runs among which one of the same shape is looked for


@dataclass(frozen=True)
class Pace:
    """Seconds that a step, an evaluation and a step of the warm start take, and tokens a step; None: not reported."""

    step: float | None = None
    evaluation: float | None = None
    warm: float | None = None
    tokens: float | None = None

    def completed(self, other: "Pace") -> "Pace":
        """Take from the other what this one does not know."""
        names = self.__dataclass_fields__
        return Pace(*(getattr(other if getattr(self, name) is None else self, name) for name in names))


def seconds_left(spec: RunSpec, step: int, warm_step: int, pace: Pace, worked: float = 0.0) -> float | None:
    """Return what is left after these steps, having worked so long in this attempt; None: there is no telling yet."""
    warm = spec.warm_start.steps - warm_step if spec.warm_start and not step else 0
    steps = spec.budget.steps - step
    if spec.budget.tokens is not None and pace.tokens:
        steps = min(steps, math.ceil(spec.budget.tokens / pace.tokens) - step)
    if (warm > 0 and pace.warm is None) or (steps > 0 and pace.step is None):
        return None
    evaluating = evaluations_left(spec, step) * (pace.evaluation or 0.0)
    left = max(0, warm) * (pace.warm or 0.0) + max(0, steps) * (pace.step or 0.0) + evaluating
    return left if spec.budget.minutes is None else max(0.0, min(left, 60 * spec.budget.minutes - worked))


def evaluations_left(spec: RunSpec, step: int) -> int:
    every, last = spec.evaluation.every_steps, spec.budget.steps
    if not every or not spec.evaluation.sets or step >= last:
        return 0
    first = 0 if step or not spec.evaluation.before_first else 1
    return first + last // every - step // every + (1 if last % every else 0)


def remaining(attempts: Iterable[Attempt]) -> dict[int, float | None]:
    """For each run of these live attempts return the seconds until its end, where they can be told."""
    live = list(attempts)
    known, now = paces([attempt.run for attempt in live]), timezone.now()
    warm = {run: points[-1].step for (run, _), points in newest((one.run_id, WARM_LOSS) for one in live).items()}
    left = {}
    for attempt in live:
        spec, worked = spec_of(attempt.run), (now - (attempt.started or now)).total_seconds()
        pace, done = known[attempt.run_id], warm.get(attempt.run_id, 0)
        left[attempt.run_id] = seconds_left(spec, attempt.step, done, pace, worked) if spec else None
    return left


def lengths(runs: Iterable[Run]) -> dict[int, float | None]:
    """For each waiting run return the seconds from its last checkpoint to its end, where they can be told."""
    waiting = list(runs)
    known = paces(waiting)
    kept = Checkpoint.objects.filter(run__in=waiting, pruned=None, folder__contains=STEPS).values("run")
    steps = dict(kept.annotate(last=Max("step")).values_list("run", "last"))
    specs = {run.pk: spec_of(run) for run in waiting}
    return {pk: seconds_left(spec, steps.get(pk, 0), 0, known[pk]) if spec else None for pk, spec in specs.items()}


def paces(runs: list[Run]) -> dict[int, Pace]:
    """Return each run's pace, completed by that of the team's newest earlier run of the same shape."""
    earlier = Run.objects.filter(team__in={run.team_id for run in runs}, kind=Kind.TRAIN, attempt__gt=0)
    candidates = list(earlier.order_by("-pk")[:MOST_EARLIER])
    reported = _reported({*(run.pk for run in runs), *(run.pk for run in candidates)})
    alike: dict[str, Pace] = {}
    for run in candidates:
        shape = shape_of(run)
        alike[shape] = alike.get(shape, Pace()).completed(reported[run.pk])
    return {run.pk: reported[run.pk].completed(alike.get(shape_of(run), Pace())) for run in runs}


def shape_of(run: Run) -> str:
    """What a run's speed hangs on, as text to compare."""
    spec = run.spec
    optimization = spec.get("optimization") or {}
    parts = [spec.get(name) for name in ("model", "rollout", "resources")]
    return json.dumps([run.team_id, *parts, optimization.get("minibatches"), optimization.get("epochs")])


def spec_of(run: Run) -> RunSpec | None:
    """The run's spec; None for other jobs, which tell no pace, and for what a later version wrote."""
    try:
        return RunSpec.model_validate(run.spec) if run.kind == Kind.TRAIN else None
    except ValueError:
        return None


def _reported(runs: set[int]) -> dict[int, Pace]:
    found = newest(((pk, key) for pk in runs for key in (STEP, EVALUATION, WARM_LOSS, TOKENS)), POINTS)
    return {
        pk: Pace(
            _mean(found.get((pk, STEP), [])),
            _mean(found.get((pk, EVALUATION), [])),
            _between(found.get((pk, WARM_LOSS), [])),
            next((one.value / one.step for one in found.get((pk, TOKENS), []) if one.is_finite and one.step), None),
        )
        for pk in runs
    }


def _mean(points: list[Point]) -> float | None:
    values = [max(0.0, one.value) for one in points if one.is_finite]
    return sum(values) / len(values) if values else None


def _between(points: list[Point]) -> float | None:
    """Seconds from one step to the next."""
    if len(points) < 2 or points[-1].step == points[0].step:
        return None
    return max(0.0, (points[-1].time - points[0].time) / (points[-1].step - points[0].step))

"""Rescoring, as the site knows it: an edited reward on the stored completions of a run."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from vantage_trainer.jobspec import JobSpec, RescoreSpec
from vantage_trainer.refusal import Refusal, refuse
from vantage_trainer.refusals import refusals
from vantage_trainer.spec import RunSpec

from vantage.numbers import LARGEST
from vantage.runs.browsing import FOLD_AFTER, beginnings
from vantage.runs.configuration import differences
from vantage.runs.job_kind import Context, JobKind, results_of
from vantage.runs.models import MetricRow, Run, Sample
from vantage.runs.stored_samples import answers_of
from vantage.teams.models import Team

MOST_STEPS = 400  # listed; the drawing has all of them
PREFIX = "rescore/"
WIDTH, HEIGHT = 720, 120


@dataclass(frozen=True)
class Drawing:
    """Mean rewards before and after as two lines in the units of their SVG."""

    before: str
    after: str
    first: int
    last: int
    low: float
    high: float
    width: int = WIDTH
    height: int = HEIGHT


def _refusals(team: Team, spec: JobSpec, parent: Run | None) -> Iterator[Refusal]:
    assert isinstance(spec, RescoreSpec)
    if parent is None:
        yield refuse("no_parent", "", "Choose the run whose completions are to be scored again.")
    elif not Sample.objects.filter(run=parent).exists():
        yield refuse("no_samples", "", "The run has stored no completion yet, so there is nothing to score again.")
    for refusal in refusals(spec.run.model_copy(update={"reward": spec.reward})):
        if refusal.path.startswith("reward."):
            yield refusal


def _result(run: Run) -> Context:
    told = next(iter(results_of(run)), None)
    rows = by_step(run)
    kept = rows if len(rows) <= MOST_STEPS else [*rows[: MOST_STEPS // 2], *rows[-MOST_STEPS // 2 :]]
    return {
        "told": told,
        "parts": edited(run),
        "steps": kept,
        "num_hidden": len(rows) - len(kept),
        "drawing": drawing(rows),
        "changes": changes(run, told) if told else [],
        "fold_after": FOLD_AFTER,
    }


def by_step(run: Run) -> list[tuple[int, dict[str, float]]]:
    """Every figure of every step, from the newest attempt."""
    found: dict[int, dict[str, float]] = {}
    rows = MetricRow.objects.filter(run=run, attempt=run.attempt, key__name__startswith=PREFIX)
    for step, name, value in rows.order_by("step").values_list("step", "key__name", "value"):
        found.setdefault(step, {})[name.removeprefix(PREFIX)] = value
    return list(found.items())


def edited(run: Run) -> list[object]:
    """What differs between the run's reward and the edited one, in the form's words."""
    before = RunSpec.model_validate(run.spec["run"])
    after = before.model_copy(update={"reward": RescoreSpec.model_validate(run.spec).reward})
    return list(differences(before.model_dump(mode="json"), after.model_dump(mode="json")))


def drawing(rows: list[tuple[int, dict[str, float]]]) -> Drawing | None:
    """Draw the mean rewards; None where there are not two steps with both."""
    both = [(step, row["reward_before"], row["reward_after"]) for step, row in rows if _has_both(row)]
    if len(both) < 2:
        return None
    values = [value for _, *pair in both for value in pair]
    low, high, first, last = min(values), max(values), both[0][0], both[-1][0]

    def line(place: int) -> str:
        across = [(one[0] - first) / (last - first) * WIDTH for one in both]
        up = [HEIGHT - 4 - (one[place] - low) / ((high - low) or 1.0) * (HEIGHT - 8) for one in both]
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(across, up, strict=True))

    return Drawing(line(1), line(2), first, last, low, high)


def _has_both(row: dict[str, float]) -> bool:
    return all(math.isfinite(row.get(f"reward_{when}", math.nan)) for when in ("before", "after"))


def changes(run: Run, told: dict) -> list[dict]:
    """The completions that change most, each with its sample and the answer that was expected."""
    all_told = told.get("changes")
    listed = [one for one in all_told if isinstance(one, dict)] if isinstance(all_told, list) else []
    ids = [pk for one in listed if isinstance(pk := one.get("id"), int) and pk <= LARGEST]
    known = Sample.objects.filter(run=run.parent_id, pk__in=ids)
    samples = {sample.pk: sample for sample in beginnings(known)}
    answers = answers_of(run.parent, [sample.prompt_id for sample in samples.values()]) if run.parent else {}
    return [
        one | {"sample": sample, "expected": answers.get(sample.prompt_id)}
        for one in listed
        if (sample := samples.get(one.get("id")))
    ]


KIND = JobKind("Rescoring", _refusals, result=_result, needs_folder=False)

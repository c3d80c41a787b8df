"""A run before it is launched: where the form begins, what it offers, how large the run will be."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from django.db.models import F
from vantage_trainer.composition import Algorithm
from vantage_trainer.presets import PRESETS
from vantage_trainer.recipes import demo_spec
from vantage_trainer.spec import EvaluationSet, RunSpec

from vantage.datasets.models import DatasetVersion
from vantage.runs.demo import DEMO_TAG
from vantage.runs.models import Run
from vantage.runs.pairing import pair
from vantage.teams.models import Team

DEFAULT_PRESET = "grpo"
Choices = dict[str, Sequence[tuple[str, str]]]


def versions_of(team: Team) -> list[DatasetVersion]:
    """The team's dataset versions, newest first."""
    versions = DatasetVersion.objects.filter(dataset__team=team, dataset__deleted=None)
    return list(versions.select_related("dataset").order_by("-created"))


def choices_of(versions: list[DatasetVersion]) -> Choices:
    """What the form offers where a spec names a dataset."""
    pairs = [(str(version), f"{version} · {version.num_rows:,} problems") for version in versions]
    offered = [("", "Choose a dataset"), *pairs]
    imitated = [("", "The training dataset"), *pairs]
    return {
        "data.train": offered,
        "data.more.*.dataset": offered,
        "warm_start.dataset": imitated,
        "evaluation.sets.*.dataset": offered,
    }


def first_draft(versions: list[DatasetVersion]) -> RunSpec:
    """A spec to begin with: GRPO on the newest dataset, warm-started where it has solutions to imitate.

    The model is untrained, so the warm start and the learning rates are those with which the demo learns.
    """
    spec = RunSpec(algorithm=PRESETS[DEFAULT_PRESET].algorithm.model_copy(update={"preset": DEFAULT_PRESET}))
    to_train, held_out = pair(versions)
    spec.optimization = demo_spec().optimization
    spec.reference.source = reference_for(spec.algorithm)
    if to_train:
        spec.data.train = str(to_train)
        spec.warm_start = demo_spec().warm_start if to_train.has_solutions else None
    if held_out:
        spec.evaluation.sets = [EvaluationSet(dataset=str(held_out))]
    return spec


def reference_for(algorithm: Algorithm) -> Literal["start", "none"]:
    """The reference policy that a composition needs: a KL measures against the start, the rest against nothing."""
    return "start" if algorithm.regularizer.kl else "none"


@dataclass(frozen=True)
class Estimate:
    """What a spec asks for, in counts that do not depend on the machine."""

    responses: int  # per step
    tokens: int  # generated per step, at most
    optimizer_steps: int  # per step
    evaluated: int | None  # responses per evaluation; None where a set has no size yet
    evaluations: int
    total_tokens: int  # generated in the whole run, at most, evaluations left out


def estimate(spec: RunSpec, sizes: dict[str, int]) -> Estimate:
    """Count what a step and the run need; `sizes` are the problems of each dataset version."""
    responses = spec.rollout.prompts_per_step * spec.rollout.group_size
    tokens = responses * spec.rollout.response_limit
    every = spec.evaluation.every_steps
    evaluations = int(spec.evaluation.before_first) + (spec.budget.steps // every if every else 0)
    problems = [min(one.limit or n, n) * one.n for one in spec.evaluation.sets if (n := sizes.get(one.dataset))]
    return Estimate(
        responses,
        tokens,
        spec.optimization.minibatches * spec.optimization.epochs,
        sum(problems) if len(problems) == len(spec.evaluation.sets) else None,
        evaluations if spec.evaluation.sets else 0,
        tokens * spec.budget.steps,
    )


def tags_of_copy(run: Run) -> list[str]:
    """What a clone is tagged with: it is a person's run, no demo."""
    return [tag for tag in run.tags if tag != DEMO_TAG]


def copy_name(run: Run, team: Team) -> str:
    """A name for a clone: the first free number after the original's name."""
    taken = set(Run.objects.filter(team=team, deleted=None).values_list(F("name"), flat=True))
    stem = run.name[:190]
    return next(name for n in range(2, 10_000) if (name := f"{stem} {n}") not in taken)

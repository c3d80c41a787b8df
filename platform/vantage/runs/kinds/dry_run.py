"""Dry run, as the site knows it: the first prompts of a run that stands in the form, sampled and scored."""

from collections.abc import Iterator

from vantage_trainer.data_files import imitated_file, training_files
from vantage_trainer.jobspec import DryRunSpec, JobSpec
from vantage_trainer.refusal import Refusal

from vantage.datasets.naming import lookup
from vantage.runs.browsing import groups_of, samples_of
from vantage.runs.create import all_refusals
from vantage.runs.folder import STEPS
from vantage.runs.job_kind import Context, JobKind, results_of
from vantage.runs.models import Run
from vantage.teams.models import Team

SIGNALS = (
    ("mixed", "Right and wrong answers"),
    ("all_correct", "All right"),
    ("all_wrong", "All wrong"),
    ("truncated", "An answer was cut at the limit"),
    ("errored", "An answer could not be scored"),
)
WEIGHTS = {
    "own": "the model as it is",
    "before_warm_start": "the model as it is, before its warm start",
    "warm_start": "the model after its warm start, exactly as the run's first step would",
    "fork": "the checkpoint that the fork begins with",
}


def _refusals(team: Team, spec: JobSpec, parent: Run | None) -> Iterator[Refusal]:
    assert isinstance(spec, DryRunSpec)
    step = spec.checkpoint.removeprefix(STEPS)
    yield from all_refusals(team, spec.run, (parent, int(step)) if parent is not None and step.isdecimal() else None)


def _files(team: Team, spec: JobSpec, parent: Run | None) -> dict[str, int]:
    assert isinstance(spec, DryRunSpec)
    named = training_files(spec.run) | imitated_file(spec.run)
    found = {name: lookup(team, reference) for name, reference in named.items()}
    return {name: version.pk for name, version in found.items() if version}


def _result(run: Run) -> Context:
    told = next(iter(results_of(run)), None)
    if told is None:
        return {"told": None}
    samples = samples_of(run, 0)
    groups, _ = groups_of(samples, samples, 1)
    rollout = DryRunSpec.model_validate(run.spec).run.rollout
    mean = mapping(told.get("lengths")).get("mean")
    found = told.get("findings")
    return {
        "told": told,
        "groups": groups,
        "signals": [(title, mapping(told.get("signal")).get(name)) for name, title in SIGNALS],
        "calls": calls(told.get("seconds")),
        "weights": WEIGHTS.get(str(told.get("weights")), ""),
        "limit": rollout.response_limit,
        "tokens_per_step": rollout.prompts_per_step * rollout.group_size * mean if isinstance(mean, float) else None,
        "learns": isinstance(found, list) and not any(mapping(one).get("stops") for one in found),
    }


def mapping(value: object) -> dict:
    """What was told, where it is a mapping: a journal may hold anything."""
    return value if isinstance(value, dict) else {}


def calls(seconds: object) -> list[tuple[str, list[float]]]:
    """What a call of each reward part took, in milliseconds: mean and longest."""
    told = {name: took for name, took in mapping(seconds).items() if isinstance(took, list)}
    return [(name, [1000 * one for one in took if isinstance(one, int | float)]) for name, took in told.items()]


KIND = JobKind("Dry run", _refusals, _files, _result)

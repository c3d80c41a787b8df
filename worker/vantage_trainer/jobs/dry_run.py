"""A dry run: sample the first prompts of a run as its first step would, score them, tell what it would learn from.

Nothing is trained, but for the run's own warm start where that was asked for.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import JsonValue

from vantage_trainer import checkpoint, fork, prepare, ranks
from vantage_trainer.cpu import check_cpu
from vantage_trainer.data import Cursor, Problem
from vantage_trainer.generation import Generator
from vantage_trainer.jobs.credited import Graded, advantages, credited
from vantage_trainer.jobs.findings import Seen, findings
from vantage_trainer.jobs.tally import tally
from vantage_trainer.jobspec import DryRunSpec
from vantage_trainer.report import sample_of
from vantage_trainer.rewards.scoring import Scorer
from vantage_trainer.rollout import Response, Sampler, seed_of
from vantage_trainer.spec import RunSpec
from vantage_trainer.warm_start import warm_start

if TYPE_CHECKING:
    from vantage_trainer.job import Job

FIRST_STEP = 1


@dataclass
class Ready:
    """What sampling needs: the rows, and the model behind a sampler."""

    problems: list[Problem]
    sampler: Sampler
    weights: str


def run(job: "Job") -> str:
    """Sample, score and tell; returns the sentence of success."""
    check_cpu()
    spec = trimmed(wanted(job).run)
    began = time.perf_counter()
    with ready(job, spec) as made:
        loaded = time.perf_counter() - began
        job.journal.phase(0, "generating")
        began = time.perf_counter()
        with job.stop.abandonable():
            responses = first_step(spec, made, wanted(job).prompts)
        spent = {"load": loaded, "generate": time.perf_counter() - began - made.sampler.reward_seconds}
    tell(job, spec, responses, {"weights": made.weights, "spent": {**spent, "reward": made.sampler.reward_seconds}})
    right = sum(bool(response.score.correct) for response in responses)
    return f"{right} of {len(responses)} completions were right."


def wanted(job: "Job") -> DryRunSpec:
    assert isinstance(job.spec, DryRunSpec)
    return job.spec


def trimmed(spec: RunSpec) -> RunSpec:
    """Leave out what a dry run does not reach or need: evaluations, checkpoints on the way, further devices."""
    trimmed = spec.model_copy(deep=True)
    trimmed.evaluation.sets = []
    trimmed.resources.training_devices = 1
    trimmed.checkpoint.every_steps, trimmed.checkpoint.every_minutes = 0, None  # a warm start is quickly repeated
    return trimmed


@contextmanager
def ready(job: "Job", spec: RunSpec) -> Iterator[Ready]:
    """Bring up the model with the weights that the run's first step would have."""
    if job.checkpoint is not None or (spec.warm_start is not None and wanted(job).warm_start):
        with _as_the_run_begins(job, spec) as made:
            yield made
    else:
        with _as_it_is(job, spec) as made:
            yield made


@contextmanager
def _as_the_run_begins(job: "Job", spec: RunSpec) -> Iterator[Ready]:
    ranks.prepare_environment()
    begun = prepare.prepare(job.folder, job.place, spec, job.journal, job.stop)
    try:
        if job.checkpoint is not None:
            fork.begin(begun, fork.Fork(checkpoint.load(job.checkpoint), True, job.checkpoint.name))
        warm_start(begun)
        with job.stop.abandonable():
            begun.generator.wait_ready()
        begun.sync()
        yield Ready(begun.problems, begun.sampler, "fork" if job.checkpoint else "warm_start")
    finally:
        begun.generator.close()
        begun.policy.close()


@contextmanager
def _as_it_is(job: "Job", spec: RunSpec) -> Iterator[Ready]:
    """Load the model without a trainer: enough where its own weights are the ones that sample first."""
    job.journal.phase(0, "loading")
    scorer = Scorer(spec.reward)
    model = prepare.model_folder(job.folder, spec)
    tokenizer = prepare.tokenizer_of(model)
    problems, _ = prepare.training_problems(job.folder / "data", spec, tokenizer, job.journal)
    generator = Generator(model, spec=spec, log=job.place / "generator.log")
    generator.start()
    try:
        with job.stop.abandonable():
            generator.wait_ready()
        weights = "before_warm_start" if spec.warm_start else "own"
        yield Ready(problems, Sampler(generator, tokenizer, scorer, spec.rollout), weights)
    finally:
        generator.close()


def first_step(spec: RunSpec, made: Ready, num_prompts: int) -> list[Response]:
    """Ask what the run's first step would ask, with the same seeds, of as many of its prompts."""
    seed = spec.seed if spec.data.shuffle_seed is None else spec.data.shuffle_seed
    problems = Cursor(made.problems, seed).take(min(num_prompts, len(made.problems)))
    places = range(spec.rollout.group_size)
    asked = [(problem, group, index) for group, problem in enumerate(problems) for index in places]
    seeds = [seed_of(spec.seed, FIRST_STEP, group, problem.id, index) for problem, group, index in asked]
    return made.sampler.sample(asked, seeds)


def tell(job: "Job", spec: RunSpec, responses: list[Response], known: dict[str, JsonValue]) -> None:
    """Write the completions and what they say about the run."""
    job.journal.phase(0, "scoring")
    gained, refused = _advantages(spec, responses)
    for response, advantage in zip(responses, gained, strict=True):
        reward = response.score.reward
        job.journal.sample(0, sample_of(response, float("nan") if reward is None else reward, advantage))
    found = findings(Seen(spec, responses, learns=any(gained)))
    if refused:
        found.insert(0, {"code": "refused", "sentence": refused, "stops": True})
    job.result({**tally(responses), **known, "findings": found})


def _advantages(spec: RunSpec, responses: list[Response]) -> tuple[list[float], str]:
    """Assign credit as the first step would: the reference is the policy itself, so no KL is in the reward yet."""
    graded = [Graded(r.group, r.score.reward, r.score.correct, len(r.token_ids), r.truncated) for r in responses]
    try:
        return advantages(credited(spec, graded)).tolist(), ""
    except ValueError as fault:  # the algorithm cannot take these rewards: telling so is what a dry run is for
        return [0.0] * len(responses), str(fault)

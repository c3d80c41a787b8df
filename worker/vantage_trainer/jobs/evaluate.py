"""Evaluate a checkpoint, or a model as it is: real generation, n samples per problem, unbiased pass@k with intervals.

Weights reach the generator as in training, pushed and proven; with the run's seed and sets the numbers are the run's.
"""

from functools import partial
from pathlib import Path

from pydantic import JsonValue

from vantage_trainer import checkpoint
from vantage_trainer.cpu import check_cpu
from vantage_trainer.data import Problem, Tokenizer
from vantage_trainer.evaluate import Evaluation, answers, summarise
from vantage_trainer.failure import Failure
from vantage_trainer.generation import Generator
from vantage_trainer.job import Job
from vantage_trainer.jobspec import EvaluateSpec
from vantage_trainer.prepare import model_folder, problems_of, tokenizer_of
from vantage_trainer.report import sample_of
from vantage_trainer.rewards.scoring import Scorer
from vantage_trainer.rollout import Response, Sampler, seed_of
from vantage_trainer.spec import EvaluationSet, RunSpec

TOLD_TOGETHER = 1000  # problems in one result


def run(job: Job) -> str:
    """Evaluate on every set; returns the sentence that tells the first pass@k of each."""
    assert isinstance(job.spec, EvaluateSpec)
    asked = job.spec.as_run()
    check_cpu()
    scorer = Scorer(asked.reward)
    model = model_folder(job.models, asked)
    tokenizer = tokenizer_of(model)
    problems = {part.name: _problems(job, part, asked, tokenizer) for part in asked.evaluation.sets}
    generator = _generator(job, asked, model)
    sampler = Sampler(generator, tokenizer, scorer, asked.rollout)
    told = [
        _evaluated(job, number, part, problems, sampler, generator) for number, part in enumerate(asked.evaluation.sets)
    ]
    return f"{job.spec.checkpoint or asked.model.name}: {'; '.join(told)}."


def _problems(job: Job, part: EvaluationSet, asked: RunSpec, tokenizer: Tokenizer) -> list[Problem]:
    return problems_of(job.folder / "data" / f"{part.name}.jsonl", part.name, asked, tokenizer, job.journal)


def _generator(job: Job, asked: RunSpec, model: Path) -> Generator:
    """Start the generator and give it the checkpoint's weights."""
    generator = Generator(model, spec=asked, log=job.place / "generator.log")
    job.closing.append(generator.close)
    generator.start()
    with job.stop.abandonable():
        generator.wait_ready()
    if job.checkpoint is not None:
        job.phase("syncing")
        report = generator.push(checkpoint.load_parameters(job.checkpoint).items(), 1)
        job.result({"what": "weights", "checkpoint": job.checkpoint.name, "rows": report.rows})
    return generator


def _evaluated(
    job: Job,
    number: int,
    part: EvaluationSet,
    problems: dict[str, list[Problem]],
    sampler: Sampler,
    generator: Generator,
) -> str:
    assert isinstance(job.spec, EvaluateSpec)
    total = len(problems[part.name][: part.limit]) * part.n
    job.phase("evaluating", 0, total)
    generator.watch = lambda num_done: job.phase("evaluating", num_done, total)
    with job.stop.abandonable():
        responses = answers(part, problems[part.name], sampler, partial(seed_of, job.spec.seed))
    for response in responses:
        job.journal.sample(number, _sample(response))
    found = summarise(part, problems[part.name][: part.limit], responses)
    if not found.n:
        raise Failure("reward_failed", f"No sample of the evaluation set {part.name} could be scored.")
    _tell(job, number, found)
    if found.unscored:
        job.journal.warning(number, f"{found.unscored} problems of {part.name} could not be scored and are left out.")
    first, value = next(iter(found.pass_at.items()))
    return f"{part.name} pass@{first} {value:.3f} over {len(found.n)} problems"


def _tell(job: Job, number: int, found: Evaluation) -> None:
    """Tell n and c of every problem, then the summary."""
    rows = list(zip(found.ids, found.n, found.c, strict=True))
    for start in range(0, len(rows), TOLD_TOGETHER):
        ids, n, c = (list(column) for column in zip(*rows[start : start + TOLD_TOGETHER], strict=True))
        job.result({"what": "problems", "set": found.name, "step": number, "ids": ids, "n": n, "c": c})
    intervals: dict[str, JsonValue] = {str(k): [*ends] for k, ends in found.bounds.items()}
    summary: dict[str, JsonValue] = {"what": "summary", "set": found.name, "step": number, "num": len(found.n)}
    summary |= {"pass_at": {str(k): value for k, value in found.pass_at.items()}, "intervals": intervals}
    job.result(summary | {"mean": sum(found.c) / sum(found.n), "length": found.length, "unscored": found.unscored})


def _sample(response: Response) -> dict[str, JsonValue]:
    reward = response.score.reward
    return sample_of(response, float("nan") if reward is None else reward, float("nan"))

"""The supervised stage before reinforcement learning: imitate written solutions, with a curve and a checkpoint."""

import random
import time

from vantage_trainer.data import Problem, Tokenizer
from vantage_trainer.failure import Failure
from vantage_trainer.run import Run
from vantage_trainer.schedule import warm_start_rate
from vantage_trainer.sequences import Sequence
from vantage_trainer.spec import WarmStart

SPARING_SECONDS = 10.0


def warm_start(run: Run) -> None:
    """Take the remaining supervised steps, then begin reinforcement learning with a fresh optimizer."""
    settings = run.spec.warm_start
    if settings is not None and run.progress.stage == "warm_start":
        _evaluate_first(run)
        _imitate(run, settings)
    if run.progress.stage == "warm_start":
        run.policy.fresh_optimizer()
        if run.policy.critic is not None:
            run.policy.critic.begin(run.policy.weights())
        run.progress.stage, run.progress.step = "rl", 0
        if settings is not None:
            run.save()


def solutions(problems: list[Problem], tokenizer: Tokenizer, settings: WarmStart) -> list[Sequence]:
    """Turn rows with a solution, not too long a one, into sequences that end as a sampled answer does."""
    written = [problem for problem in problems if problem.solution]
    made = [_sequence(index, problem, tokenizer, settings.ending) for index, problem in enumerate(written)]
    limit = settings.solution_limit
    return [one for one in made if limit is None or len(one.response_ids) <= limit]


def _evaluate_first(run: Run) -> None:
    """Evaluate the model as it comes, where the spec asks for it; a stage resumed amid its steps has passed that."""
    wanted = run.spec.evaluation.before_warm_start and run.spec.evaluation.sets
    if not wanted or run.progress.step > 0:
        return
    run.journal.event(0, "waiting", {"what": "the generator's engine", "since": time.time()})
    with run.stop.abandonable():
        run.generator.wait_ready()
    with run.counted():
        found = run.evaluate_as("warm_start")
        run.journal.metrics(0, {name: value for name, value in found.items() if "/pass@" in name})


def _imitate(run: Run, settings: WarmStart) -> None:
    examples = _examples(run, settings)
    run.journal.event(run.progress.step, "stage", {"name": "warm_start", "steps": settings.steps})
    while run.progress.step < settings.steps:
        run.stop.check()
        run.generator.check()
        run.phase("warm_start", run.progress.step, settings.steps)
        with run.counted():
            loss, lr = _step(run, settings, examples)
        run.journal.metrics(run.progress.step, {"warm_start/loss": loss, "warm_start/lr": lr})
        _save_when_due(run)


def _step(run: Run, settings: WarmStart, examples: list[Sequence]) -> tuple[float, float]:
    step = run.progress.step + 1
    lr = warm_start_rate(settings, step)
    chosen = _chosen(run, examples, settings.batch, step)
    num_tokens = sum(len(sequence.response_ids) for sequence in chosen)
    weighted = [sequence.weighing(1 / num_tokens) for sequence in chosen]
    loss = run.policy.update(weighted, lr, None, []).loss
    run.progress.step = step
    run.progress.trained += num_tokens
    run.progress.flops += 6.0 * run.policy.num_parameters * num_tokens
    return loss, lr


def _chosen(run: Run, examples: list[Sequence], batch: int, step: int) -> list[Sequence]:
    """Draw a step's examples by its number alone, so that a resumed stage repeats the same ones."""
    chance = random.Random(run.seed_of("warm start", step))
    return [examples[chance.randrange(len(examples))] for _ in range(batch)]


def _save_when_due(run: Run) -> None:
    """Save as often as later, but not more often than every few seconds: supervised steps are short."""
    settings, seconds = run.spec.checkpoint, time.monotonic() - run.saved
    stage, step = run.kept or ("", 0)
    done = run.progress.step - (step if stage == "warm_start" else 0)
    late = settings.every_minutes is not None and seconds / 60 >= settings.every_minutes
    if late or (0 < settings.every_steps <= done and seconds >= SPARING_SECONDS):
        run.save()


def _examples(run: Run, settings: WarmStart) -> list[Sequence]:
    """Return what is imitated, and tell how many solutions are too long for it."""
    examples = solutions(run.imitated, run.tokenizer, settings)
    num_written = sum(bool(problem.solution) for problem in run.imitated)
    limit = settings.solution_limit
    if not examples:
        raise Failure("no_solutions", f"No solution is within the warm start's limit of {limit} tokens: raise it.")
    if len(examples) < num_written and run.progress.step == 0:
        left_out = f"{num_written - len(examples)} of {num_written} solutions are longer than {limit} tokens"
        run.journal.warning(0, f"{left_out} and are not imitated.")
    return examples


def _sequence(index: int, problem: Problem, tokenizer: Tokenizer, ending: str) -> Sequence:
    text = problem.solution + ending.replace("{answer}", problem.answer)
    ids = list(tokenizer(text, add_special_tokens=False)["input_ids"])
    if ids[-1:] != [tokenizer.eos_token_id]:  # a solution may spell its end out
        ids.append(tokenizer.eos_token_id)
    return Sequence(problem.prompt_ids, ids, [0.0] * len(ids), index=index)

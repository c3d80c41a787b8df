"""The training loop. Read this page first: sample, reward, credit, update, sync, report.

Shapes: _B one value per response of the step's batch.
"""

import time
from dataclasses import dataclass, field

import torch
from torch import Tensor

from vantage_trainer import reference, report, retirement
from vantage_trainer.algorithms.credit import Credit, credit
from vantage_trainer.algorithms.regularizer import kl_in_reward
from vantage_trainer.critic import ValueUpdate
from vantage_trainer.criticism import Judgement, criticise, update_critic
from vantage_trainer.failure import Failure
from vantage_trainer.minibatches import minibatches, sampled, sequence_of, weighted
from vantage_trainer.policy import Update
from vantage_trainer.rollout import Response
from vantage_trainer.run import Run
from vantage_trainer.schedule import critic_rate, learning_rate

AGREEMENT = {"float32": 1e-4, "bfloat16": 0.05}
INSPECTED = 2


@dataclass
class Step:
    """What one step gathers on its way; with a critic, what it makes of each response that takes part."""

    number: int
    cursor: int
    responses: list[Response] = field(default_factory=list)
    num_sampled: int = 0
    updates: list[Update] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    lr: float = 0.0
    judged: dict[int, Judgement] = field(default_factory=dict)
    foreseen: dict[str, float] = field(default_factory=dict)
    value_updates: list[ValueUpdate] = field(default_factory=list)
    critic_lr: float = 0.0


def train(run: Run) -> None:
    """Take the remaining steps of the run's budget; what a step found is told before anything may interrupt."""
    prepare(run)
    if run.progress.step > 0 or run.spec.evaluation.before_first:
        evaluate_when_due(run)
    while run.progress.step < run.spec.budget.steps and not report.is_spent(run):
        run.stop.check()
        if retirement.is_exhausted(run):
            break
        with run.counted():
            values = take_step(run)
        run.journal.metrics(run.progress.step, values | report.totals(run))
        evaluate_when_due(run)
        if _checkpoint_is_due(run):
            run.save()
    evaluate_when_due(run, last=True)


def prepare(run: Run) -> None:
    """Bring generator and reference to the trainer's weights."""
    first = run.progress.step == 0
    if first:
        reference.begin(run)
    run.phase("waiting")
    run.journal.event(run.progress.step, "waiting", {"what": "the generator's engine", "since": time.time()})
    with run.stop.abandonable():
        run.generator.wait_ready()
    run.sync()
    if first:
        run.journal.event(0, "stage", {"name": "rl", "steps": run.spec.budget.steps})


def evaluate_when_due(run: Run, *, last: bool = False) -> None:
    """Evaluate at every so many steps and at the end, once each; a resumed run makes up for what was interrupted."""
    every, step = run.spec.evaluation.every_steps, run.progress.step
    due = every > 0 and (last or step % every == 0)
    if due and run.spec.evaluation.sets and run.progress.evaluated != step:
        with run.counted():
            values = run.evaluate()
        run.progress.evaluated = step
        run.journal.metrics(step, values)


def take_step(run: Run) -> dict[str, float]:
    """One step, from prompts to proven weights; returns its metrics. Nothing is committed before the update ends."""
    began = time.perf_counter()
    step = Step(run.progress.step + 1, run.progress.cursor)
    with run.stop.abandonable():
        sample(run, step)
    old, ref = score(run, step)
    given = assign_credit(run, step, old, ref)
    if run.policy.critic is not None:
        given = criticise(run, step, given, run.policy.critic, old, ref)
    update(run, step, given, old, ref)
    _commit(run, step, given)
    reference.refresh_when_due(run)
    step.seconds["sync"] = run.sync()
    step.seconds["step"] = time.perf_counter() - began
    run.phase("reporting")
    report.samples(run, step, given, old)
    return report.metrics(run, step, given) | retirement.metrics(run)


def sample(run: Run, step: Step) -> None:
    """Ask for answers; with dynamic sampling until enough groups hold right and wrong ones."""
    run.phase("generating")
    dynamic = run.spec.algorithm.sampling.dynamic_sampling
    wanted = run.spec.rollout.prompts_per_step
    began = time.perf_counter()
    scoring = 0.0
    for _ in range(dynamic.max_batches if dynamic else 1):
        step.responses += _batch(run, step, wanted)
        scoring += run.sampler.reward_seconds
        if dynamic and len(report.mixed_groups(step.responses)) >= wanted:
            break
    step.num_sampled = sum(response.num_trained for response in step.responses)
    if dynamic:
        surplus = set(report.mixed_groups(step.responses)[wanted:])
        step.responses = [response for response in step.responses if response.group not in surplus]
    step.seconds |= {"generate": time.perf_counter() - began - scoring, "reward": scoring}
    _check_failures(run, step)


def score(run: Run, step: Step) -> tuple[list[Tensor] | None, list[Tensor] | None]:
    """Compute log-probabilities that the update cannot make itself: old ones when it steps twice, the reference's."""
    began = time.perf_counter()
    spec, sequences = run.spec, [sequence_of(index, response) for index, response in enumerate(step.responses)]
    steps_twice = spec.optimization.minibatches * spec.optimization.epochs > 1
    kl = spec.algorithm.regularizer.kl
    in_reward = kl is not None and kl.where == "reward"
    needs_old, agreed = steps_twice or in_reward, run.version > 1
    old = run.policy.logprobs(sequences) if needs_old or not agreed else None
    if not agreed and old is not None:
        _check_agreement(run, step, old)
    needs_reference = kl is not None and spec.reference.source != "none"
    ref = run.policy.logprobs(sequences, reference=True) if needs_reference else None
    step.seconds["train"] = time.perf_counter() - began
    return (old if needs_old else None), ref


def assign_credit(run: Run, step: Step, old: list[Tensor] | None, ref: list[Tensor] | None) -> Credit:
    """Turn rewards into advantages, and say which responses take part."""
    run.phase("scoring")
    responses, algorithm = step.responses, run.spec.algorithm
    kl, kl_B = algorithm.regularizer.kl, None
    if kl is not None and kl.where == "reward" and old is not None and ref is not None:
        index_T = torch.repeat_interleave(torch.arange(len(old)), torch.tensor([r.num_trained for r in responses]))
        kl_B = kl_in_reward(kl, sampled(responses, old), sampled(responses, ref), index_T, len(old))
    rewards = [float("nan") if r.score.reward is None else r.score.reward for r in responses]
    return credit(
        algorithm,
        torch.tensor(rewards, dtype=torch.float64),
        torch.tensor([r.group for r in responses]),
        torch.tensor([r.num_trained for r in responses]),
        correct_B=torch.tensor([bool(r.score.correct) for r in responses]),
        truncated_B=torch.tensor([r.truncated for r in responses]),
        response_limit=run.spec.rollout.response_limit,
        kl_B=kl_B,
        ema=run.progress.ema,
    )


def update(run: Run, step: Step, given: Credit, old: list[Tensor] | None, ref: list[Tensor] | None) -> None:
    """Take the optimizer steps of this batch: minibatches of whole groups, as many epochs as the spec says."""
    run.phase("updating")
    began = time.perf_counter()
    step.lr = learning_rate(run.spec.optimization, step.number, run.spec.budget.steps)
    step.critic_lr = critic_rate(run.spec.optimization, step.lr)
    inspect = report.interesting(step.responses, given)[:INSPECTED]
    for epoch in range(run.spec.optimization.epochs):
        for indices in minibatches(run, step, given, epoch):
            batch = weighted(run, step, given, indices, old, ref)
            step.updates.append(run.policy.update(batch, step.lr, run.spec.algorithm, inspect))
            step.value_updates += update_critic(run, step, batch)
    if not step.updates:
        run.progress.skipped += 1
        run.journal.warning(step.number, "No response of this step could teach anything, so its update was skipped.")
    step.seconds["train"] += time.perf_counter() - began


def _batch(run: Run, step: Step, num: int) -> list[Response]:
    cursor = run.cursor()
    cursor.position = step.cursor
    first = len({response.group for response in step.responses})
    problems, size = cursor.take(num), run.spec.rollout.group_size
    asked = [(problem, first + place, index) for place, problem in enumerate(problems) for index in range(size)]
    seeds = [run.sample_seed(step.number, group, problem, index) for problem, group, index in asked]
    step.cursor = cursor.position
    return run.sampler.sample(asked, seeds)


def _commit(run: Run, step: Step, given: Credit) -> None:
    """Make the step's outcome the run's."""
    progress = run.progress
    trained = sum(step.responses[i].num_trained for i in given.effective_B.nonzero().flatten().tolist())
    trained *= run.spec.optimization.epochs
    progress.step, progress.cursor, progress.ema = step.number, step.cursor, float(given.ema)
    progress.score = None
    progress.generated += step.num_sampled
    progress.trained += trained
    progress.flops += run.policy.num_parameters * (6.0 * trained + 2.0 * step.num_sampled)
    progress.flops += 0 if run.policy.critic is None else run.policy.critic.num_parameters * 6.0 * trained
    retirement.retire(run, step.responses)
    for response in step.responses:
        seen = progress.history.setdefault(response.problem.id, [0, 0])
        seen[0] += bool(response.score.correct)
        seen[1] += response.score.correct is not None


def _check_agreement(run: Run, step: Step, old: list[Tensor]) -> None:
    """Compare the generator's log-probabilities with the trainer's before anything is trained on them."""
    behaviour_T = sampled(step.responses, [torch.tensor(r.completion.logps) for r in step.responses])
    gap_T = (sampled(step.responses, old) - behaviour_T).abs()
    mean, most = float(gap_T.mean()), float(gap_T.max())
    run.journal.event(step.number, "agreement", {"mean": mean, "max": most, "tokens": len(gap_T)})
    truncated = run.spec.rollout.top_p < 1 or run.spec.rollout.top_k > 0
    if not truncated and not mean <= AGREEMENT[run.spec.model.dtype]:
        raise Failure(
            "disagreement",
            f"Generator and trainer disagree about the same weights: log-probabilities differ by {mean:.2g} on average "
            f"(at most {AGREEMENT[run.spec.model.dtype]:.0e} is allowed), so nothing was trained.",
        )


def _check_failures(run: Run, step: Step) -> None:
    failed = [response for response in step.responses if response.errored]
    share = len(failed) / len(step.responses)
    if not failed:
        return
    sentence = f"{len(failed)} of {len(step.responses)} responses could not be scored ({failed[0].score.cause})."
    run.journal.warning(step.number, sentence)
    if share > run.spec.reward.failure_share:
        limit = run.spec.reward.failure_share
        raise Failure("reward_failed", f"{sentence} That is more than the allowed share of {limit:g}.")


def _checkpoint_is_due(run: Run) -> bool:
    settings = run.spec.checkpoint
    minutes = (time.monotonic() - run.saved) / 60
    late = settings.every_minutes is not None and minutes >= settings.every_minutes
    return late or (settings.every_steps > 0 and run.progress.step % settings.every_steps == 0)

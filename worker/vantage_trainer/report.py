"""What a step tells: metrics by the dictionary's names, from global sums over global counts, and its samples."""

import math
import time
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING

from pydantic import JsonValue
from torch import Tensor

from vantage_trainer import criticism
from vantage_trainer.algorithms.credit import Credit
from vantage_trainer.algorithms.measure import added
from vantage_trainer.algorithms.measure import metrics as divided
from vantage_trainer.rollout import Response
from vantage_trainer.run import Run

if TYPE_CHECKING:
    from vantage_trainer.loop import Step

SIGNALS = ("errored", "stale", "truncated", "all_correct", "all_wrong", "mixed")


def metrics(run: Run, step: "Step", given: Credit) -> dict[str, float]:
    """All metrics of one step but the run's totals."""
    values = _rewards(step.responses, given) | _lengths(step.responses) | signals(step.responses)
    values |= (
        _policy(step)
        | criticism.metrics(step)
        | _interruptions(run, step.responses)
        | {f"time/{name}": seconds for name, seconds in step.seconds.items()}
    )
    return values | {"policy/lr": step.lr, "tokens/per_second": step.num_sampled / step.seconds["step"]}


def totals(run: Run) -> dict[str, float]:
    """What has been used so far, over current steps."""
    progress = run.progress
    return {
        "tokens/generated": progress.generated,
        "tokens/trained": progress.trained,
        "compute/flops": progress.flops,
        "compute/device_hours": progress.device_seconds / 3600,
    }


def is_spent(run: Run) -> bool:
    """Say whether the budget's minutes or tokens are used up."""
    budget = run.spec.budget
    late = budget.minutes is not None and time.monotonic() - run.started >= 60 * budget.minutes
    return late or (budget.tokens is not None and run.progress.generated >= budget.tokens)


def signals(responses: list[Response]) -> dict[str, float]:
    """Class each group by the first that fits; the shares add up to 1."""
    classes = [_signal(group) for group in groups(responses).values()]
    return {f"signal/{name}": classes.count(name) / len(classes) for name in SIGNALS}


def groups(responses: list[Response]) -> dict[int, list[Response]]:
    found: dict[int, list[Response]] = {}
    for response in responses:
        found.setdefault(response.group, []).append(response)
    return found


def mixed_groups(responses: list[Response]) -> list[int]:
    """List groups with right and wrong answers among those that could be scored."""
    verdicts = {group: {r.score.correct for r in members} for group, members in groups(responses).items()}
    return [group for group, found in verdicts.items() if {True, False} <= found]


def interesting(responses: list[Response], given: Credit) -> list[int]:
    """Order responses for inspection: from the first group that teaches, one that gained and one that lost."""
    taking_part = given.effective_B.nonzero().flatten().tolist()
    teaching = [index for index in taking_part if float(given.advantage_B[index]) != 0]
    first = [index for index in teaching if responses[index].group == responses[teaching[0]].group]
    gained = [index for index in first if float(given.advantage_B[index]) > 0][:1]
    lost = [index for index in first if float(given.advantage_B[index]) < 0][:1]
    return gained + lost or taking_part


def samples(run: Run, step: "Step", given: Credit, old: list[Tensor] | None) -> None:
    """Write every response of the step, with token arrays for the inspected ones."""
    inspected = {index: arrays for update in step.updates for index, arrays in update.inspected.items()}
    for index, response in enumerate(step.responses):
        content = sample_of(response, float(given.reward_B[index]), float(given.advantage_B[index]))
        seed = run.sample_seed(step.number, response.group, response.problem, response.index)
        content["digest"] = digest(seed, response.token_ids)
        if index in inspected:
            arrays = inspected[index]
            known = arrays["logp"] if old is None else old[index].tolist()
            content["tokens"] = _tokens(run, response, arrays | _judgement(step, index), known)
        run.journal.sample(step.number, content)


def digest(seed: int, token_ids: list[int]) -> str:
    """Name what was drawn and how, so that the same draw can be recognized."""
    return blake2b(repr((seed, token_ids)).encode(), digest_size=8).hexdigest()


def sample_of(response: Response, reward: float, advantage: float) -> dict[str, JsonValue]:
    return {
        "prompt_id": response.problem.id,
        "group": response.group,
        "index": response.index,
        "prompt": response.problem.prompt,
        "text": response.text,
        "num_tokens": response.num_trained,
        "reward": reward if math.isfinite(reward) else None,
        "parts": dict(response.score.parts),
        "correct": response.score.correct,
        "advantage": advantage if math.isfinite(advantage) else None,
        "finish": response.completion.finish,
        "version": response.completion.version,
        **({"cause": response.score.cause} if response.score.cause else {}),
    }


def _tokens(run: Run, response: Response, arrays: dict[str, list[float]], old: list[float]) -> JsonValue:
    text: list[JsonValue] = [run.tokenizer.decode([token]) for token in response.token_ids]
    content: dict[str, JsonValue] = {"text": text, "old": _finite(old)}
    content["behaviour"] = _finite(response.completion.logps)
    return content | {name: _finite(values) for name, values in arrays.items()}


def _judgement(step: "Step", index: int) -> dict[str, list[float]]:
    """What a critic made of each token, where there is one."""
    if index not in step.judged:
        return {}
    found = step.judged[index]
    arrays = {"advantage": found.advantage_T, "value": found.value_T, "return": found.return_T}
    return {name: value_T.tolist() for name, value_T in arrays.items()}


def _finite(values: Iterable[float]) -> list[JsonValue]:
    return [float(value) if math.isfinite(value) else None for value in values]


def _signal(group: list[Response]) -> str:
    correct = [bool(response.score.correct) for response in group]
    tests: dict[str, Callable[[], bool]] = {
        "errored": lambda: any(response.errored for response in group),
        "truncated": lambda: any(response.truncated for response in group),
        "all_correct": lambda: all(correct),
        "all_wrong": lambda: not any(correct),
    }
    return next((name for name, fits in tests.items() if fits()), "mixed")


def _rewards(responses: list[Response], given: Credit) -> dict[str, float]:
    scored = [index for index, response in enumerate(responses) if not response.errored]
    rewards = [float(given.reward_B[index]) for index in scored]
    values = _mean("reward/mean", rewards) | _deviation(rewards)
    for name in dict.fromkeys(name for response in responses for name in response.score.parts):
        parts = [response.score.parts.get(name) for response in responses]
        values |= _mean(f"reward/part/{name}", [part for part in parts if part is not None])
    return values | _mean("train/correct", [float(bool(responses[index].score.correct)) for index in scored])


def _deviation(values: list[float]) -> dict[str, float]:
    if not values:
        return {}
    mean = math.fsum(values) / len(values)
    return {"reward/std": math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))}


def _lengths(responses: list[Response]) -> dict[str, float]:
    lengths = [float(response.num_trained) for response in responses]
    right = [float(response.num_trained) for response in responses if response.score.correct]
    wrong = [float(response.num_trained) for response in responses if response.score.correct is False]
    values = _mean("length/mean", lengths) | _mean("length/correct", right) | _mean("length/wrong", wrong)
    cut = [float(response.truncated) for response in responses]
    return values | {"length/max": max(lengths)} | _mean("length/truncated_fraction", cut)


def _interruptions(run: Run, responses: list[Response]) -> dict[str, float]:
    told = [float(response.completion.num_injected > 0) for response in responses]
    return _mean("length/interrupted_fraction", told) if run.spec.algorithm.sampling.interruption else {}


def _policy(step: "Step") -> dict[str, float]:
    """Sums over all optimizer steps of the batch; the gradient's norm is the largest of them."""
    if not step.updates:
        return {}
    sums = added([update.sums for update in step.updates])
    maxima: dict[str, Tensor] = {}
    for update in step.updates:
        maxima |= {name: max(value, maxima.get(name, value)) for name, value in update.maxima.items()}
    values = divided(sums, maxima)
    loss = math.fsum(update.loss for update in step.updates) / len(step.updates)
    return values | {"policy/loss": loss, "policy/grad_norm": max(update.grad_norm for update in step.updates)}


def _mean(name: str, values: list[float]) -> dict[str, float]:
    """Leave out what has no denominator."""
    return {name: math.fsum(values) / len(values)} if values else {}

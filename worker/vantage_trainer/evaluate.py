"""Held-out evaluation: n samples per problem, unbiased pass@k, and an interval over problems.

Its seeds depend on the set, the problem and the sample alone: two evaluations differ by the weights, and training's
random numbers are never touched.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from vantage_trainer.data import Problem
from vantage_trainer.pass_at_k import mean_pass_at_k
from vantage_trainer.rollout import Response, Sampler
from vantage_trainer.spec import EvaluationSet

Z95 = 1.959963984540054


@dataclass(frozen=True)
class Evaluation:
    """Per problem: samples scored and samples correct; then their summary."""

    name: str
    ids: list[str]
    n: list[int]
    c: list[int]
    pass_at: dict[int, float]
    low: float
    high: float
    interval: str
    length: float
    unscored: int
    bounds: dict[int, tuple[float, float]] = field(default_factory=dict)

    def metrics(self, name: str = "eval") -> dict[str, float]:
        """Name the summary as the metric dictionary does."""
        values = {f"pass@{k}": value for k, value in self.pass_at.items()}
        values |= {"mean": sum(self.c) / sum(self.n), "low": self.low, "high": self.high, "length": self.length}
        return {f"{name}/{self.name}/{key}": value for key, value in values.items()}

    def event(self) -> dict[str, JsonValue]:
        content: dict[str, Any] = {"set": self.name, "ids": self.ids, "n": self.n, "c": self.c}
        content |= {"pass_at": {str(k): value for k, value in self.pass_at.items()}}
        content |= {"bounds": {str(k): list(ends) for k, ends in self.bounds.items()}}
        return content | {"low": self.low, "high": self.high, "interval": self.interval}


def evaluate(part: EvaluationSet, problems: list[Problem], sampler: Sampler, seed_of: Callable[..., int]) -> Evaluation:
    """Sample and score; problems whose every sample failed to be scored are left out and counted."""
    return summarise(part, problems[: part.limit], answers(part, problems, sampler, seed_of))


def answers(
    part: EvaluationSet, problems: list[Problem], sampler: Sampler, seed_of: Callable[..., int]
) -> list[Response]:
    """Sample n responses to every problem of the set, in one request to the generator, and score them."""
    chosen = problems[: part.limit]
    asked = [(problem, group, index) for group, problem in enumerate(chosen) for index in range(part.n)]
    seeds = [seed_of("evaluate", part.name, problem.id, index) for problem, _, index in asked]
    return sampler.sample(asked, seeds, temperature=part.temperature)


def summarise(part: EvaluationSet, problems: list[Problem], responses: list[Response]) -> Evaluation:
    verdicts: dict[int, list[bool]] = {}
    for response in responses:
        if response.score.correct is not None:
            verdicts.setdefault(response.group, []).append(response.score.correct)
    kept = [group for group in range(len(problems)) if len(verdicts.get(group, [])) >= max(part.k)]
    n = [len(verdicts[group]) for group in kept]
    c = [sum(verdicts[group]) for group in kept]
    low, high, kind = interval(n, c)
    return Evaluation(
        name=part.name,
        ids=[problems[group].id for group in kept],
        n=n,
        c=c,
        pass_at={k: mean_pass_at_k(n, c, k) for k in sorted(set(part.k)) if n},
        low=low,
        high=high,
        interval=kind,
        length=sum(response.num_trained for response in responses) / max(1, len(responses)),
        unscored=len(problems) - len(kept),
        bounds={k: bounds(n, c, k) for k in sorted(set(part.k)) if n},
    )


def bounds(n: list[int], c: list[int], k: int) -> tuple[float, float]:
    """Return the 95% interval of pass@k over problems, as interval() does for pass@1."""
    values = [mean_pass_at_k([samples], [correct], k) for samples, correct in zip(n, c, strict=True)]
    if all(value in (0.0, 1.0) for value in values):
        return wilson(int(sum(values)), len(values))
    return normal(values)


def interval(n: list[int], c: list[int]) -> tuple[float, float, str]:
    """Return the 95% interval of pass@1 over problems: Wilson's for one sample each, else normal over problem means."""
    if not n:
        return math.nan, math.nan, "none"
    if max(n) == 1:
        return (*wilson(sum(c), len(n)), "wilson")
    return (*normal([correct / samples for samples, correct in zip(n, c, strict=True)]), "normal")


def normal(values: list[float]) -> tuple[float, float]:
    """The interval of a mean over problems, cut to 0 and 1."""
    mean = math.fsum(values) / len(values)
    variance = math.fsum((value - mean) ** 2 for value in values) / max(1, len(values) - 1)
    half = Z95 * math.sqrt(variance / len(values))
    return max(0.0, mean - half), min(1.0, mean + half)


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """Wilson's score interval (1927); it stays inside 0 and 1."""
    share, weight = successes / trials, Z95**2 / trials
    middle = (share + weight / 2) / (1 + weight)
    half = Z95 * math.sqrt(share * (1 - share) / trials + weight / (4 * trials)) / (1 + weight)
    return max(0.0, middle - half), min(1.0, middle + half)

"""Responses: asked of the generator, decoded and scored."""

import hashlib
import time
from dataclasses import dataclass
from typing import Protocol

from vantage_trainer.data import Problem, Tokenizer
from vantage_trainer.generation import Completion, Request
from vantage_trainer.rewards.scoring import Score, Scorer
from vantage_trainer.spec import Rollout


@dataclass(frozen=True)
class Response:
    """One sampled answer to a problem; `group` counts problems within the batch, `index` samples within the group."""

    problem: Problem
    group: int
    index: int
    completion: Completion
    text: str
    score: Score

    @property
    def token_ids(self) -> list[int]:
        return self.completion.token_ids

    @property
    def num_trained(self) -> int:
        """Count the sampled tokens: L of the formula sheets."""
        return len(self.token_ids) - self.completion.num_injected

    @property
    def truncated(self) -> bool:
        return self.completion.finish == "length"

    @property
    def errored(self) -> bool:
        return self.score.reward is None


class Engine(Protocol):
    """What sampling needs of the generator."""

    def generate(self, requests: list[Request]) -> list[Completion]: ...


class Sampler:
    """Turn problems into scored responses; remembers how long the last call spent on scoring."""

    def __init__(self, engine: Engine, tokenizer: Tokenizer, scorer: Scorer, rollout: Rollout) -> None:
        self._engine = engine
        self._tokenizer = tokenizer
        self._scorer = scorer
        self._rollout = rollout
        self.reward_seconds = 0.0

    def sample(
        self, asked: list[tuple[Problem, int, int]], seeds: list[int], *, temperature: float | None = None
    ) -> list[Response]:
        """Draw one response for each (problem, group, index), with a seed of its own."""
        pairs = zip(asked, seeds, strict=True)
        completions = self._engine.generate(
            [self._request(problem, seed, temperature) for (problem, *_), seed in pairs]
        )
        started = time.perf_counter()
        responses = [self._response(*place, completion) for place, completion in zip(asked, completions, strict=True)]
        self.reward_seconds = time.perf_counter() - started
        return responses

    def _request(self, problem: Problem, seed: int, temperature: float | None) -> Request:
        rollout = self._rollout
        return Request(
            prompt_ids=problem.prompt_ids,
            seed=seed,
            max_tokens=rollout.response_limit,
            temperature=rollout.temperature if temperature is None else temperature,
            top_p=rollout.top_p,
            top_k=rollout.top_k,
            stop=rollout.stop,
        )

    def _response(self, problem: Problem, group: int, index: int, completion: Completion) -> Response:
        text = self._tokenizer.decode(completion.token_ids, skip_special_tokens=True)
        if completion.finish == "error":
            return Response(problem, group, index, completion, text, Score(None, {}, None, completion.sentence))
        return Response(problem, group, index, completion, text, self._scorer.score(text, problem.answer))


def seed_of(*parts: object) -> int:
    """Hash what names a sample into the seed it is drawn with."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest(), "big") >> 1

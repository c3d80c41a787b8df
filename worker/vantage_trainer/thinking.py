"""Forced interruption of thinking (ScaleRL, arXiv:2510.13786): past its budget a response is told to answer.

A response first gets a budget of its own, drawn from its seed. Where that runs out before the end of thinking was
written, the interruption is appended, which trains nothing, and the model goes on for as long as an answer may be.
"""

import random
from dataclasses import replace

from vantage_trainer.composition import Interruption
from vantage_trainer.data import Tokenizer
from vantage_trainer.generation import Completion, Request
from vantage_trainer.rollout import Engine, seed_of
from vantage_trainer.spec import RunSpec


class Thinking:
    """Stands before the generator and asks it twice where a response's thinking has to be bounded."""

    def __init__(self, engine: Engine, tokenizer: Tokenizer, spec: RunSpec, part: Interruption) -> None:
        assert spec.rollout.thinking_budget is not None
        self._engine = engine
        self._tokenizer = tokenizer
        self._part = part
        self._end = spec.rollout.thinking_end
        self._budget = spec.rollout.thinking_budget
        phrase = tokenizer(spec.rollout.interruption_text, add_special_tokens=False)
        self._phrase: list[int] = list(phrase["input_ids"])

    def generate(self, requests: list[Request]) -> list[Completion]:
        """Sample one completion per request, in the order of the requests."""
        first = self._engine.generate([replace(one, max_tokens=self._first(one)) for one in requests])
        cut = [index for index, completion in enumerate(first) if completion.finish == "length"]
        begun = {index: self._interrupted(requests[index], first[index]) for index in cut}
        going = [index for index in cut if self._rest(requests[index], begun[index]) > 0]
        later = self._engine.generate([self._continued(requests[index], begun[index]) for index in going])
        joined = {index: _joined(begun[index], rest) for index, rest in zip(going, later, strict=True)}
        return [joined.get(index, completion) for index, completion in enumerate(first)]

    def _first(self, request: Request) -> int:
        """Draw the budget; a response is never given more than the request's limit."""
        low, high = self._part.min_fraction, self._part.max_fraction
        share = random.Random(f"thinking {request.seed}").uniform(low, high)
        return max(1, min(request.max_tokens, round(share * self._budget)))

    def _interrupted(self, request: Request, completion: Completion) -> Completion:
        """Append the interruption unless the thinking has ended by itself."""
        if self._end in self._tokenizer.decode(completion.token_ids):
            return completion
        at = len(completion.token_ids)
        return replace(
            completion,
            token_ids=completion.token_ids + self._phrase,
            logps=completion.logps + [0.0] * len(self._phrase),
            injected=(at, at + len(self._phrase)),
        )

    def _rest(self, request: Request, begun: Completion) -> int:
        """Count the tokens left: those of an answer after an interruption, else what the limit leaves."""
        if begun.num_injected:
            return request.max_tokens - self._budget
        return request.max_tokens - len(begun.token_ids)

    def _continued(self, request: Request, begun: Completion) -> Request:
        return replace(
            request,
            prompt_ids=request.prompt_ids + begun.token_ids,
            max_tokens=self._rest(request, begun),
            seed=seed_of("after the thinking", request.seed),
        )


def answering(engine: Engine, tokenizer: Tokenizer, spec: RunSpec) -> Engine:
    """Return what answers requests: the generator, or something before it that bounds the thinking."""
    part = spec.algorithm.sampling.interruption
    return engine if part is None else Thinking(engine, tokenizer, spec, part)


def _joined(begun: Completion, rest: Completion) -> Completion:
    if rest.finish == "error":
        return rest
    return replace(
        begun,
        token_ids=begun.token_ids + rest.token_ids,
        logps=begun.logps + rest.logps,
        finish=rest.finish,
        version=rest.version,
    )

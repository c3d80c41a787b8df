"""Thinking past its budget is interrupted: what is appended is answered, and trains nothing."""

from typing import Any

import torch
from vantage_trainer.composition import Interruption
from vantage_trainer.generation import Completion, Request
from vantage_trainer.sequences import Sequence, tokens
from vantage_trainer.spec import Rollout, RunSpec
from vantage_trainer.thinking import Thinking

SPEC = RunSpec(rollout=Rollout(response_limit=10, thinking_budget=4, thinking_end="E", interruption_text="stopE"))


class Letters:
    """One token per character."""

    eos_token_id = 0

    def __call__(self, text: str, *, add_special_tokens: bool = True) -> Any:
        return {"input_ids": [ord(letter) for letter in text]}

    def decode(self, ids: list[int], *, skip_special_tokens: bool = False) -> str:
        return "".join(map(chr, ids))


class Writer:
    """Continues a script per request, as far as the request allows."""

    def __init__(self, *scripts: str) -> None:
        self.scripts, self.asked = scripts, []

    def generate(self, requests: list[Request]) -> list[Completion]:
        self.asked.append(requests)
        return [self._answer(request) for request in requests]

    def _answer(self, request: Request) -> Completion:
        script, written = self.scripts[request.prompt_ids[0]], Letters().decode(request.prompt_ids[1:])
        rest = script.removeprefix(written.replace("stopE", ""))
        ids = [ord(letter) for letter in rest[: request.max_tokens]]
        finish = "stop" if len(rest) <= request.max_tokens else "length"
        return Completion(ids, [-1.0] * len(ids), finish, 3)


def answered(*scripts: str, low: float = 1.0) -> tuple[list[Completion], list[list[Request]]]:
    writer = Writer(*scripts)
    thinking = Thinking(writer, Letters(), SPEC, Interruption(min_fraction=low, max_fraction=1.0))
    return thinking.generate([Request([number], 7 + number, 10) for number in range(len(scripts))]), writer.asked


def test_thinking_past_its_budget_is_told_to_end_and_answers() -> None:
    [found], asked = answered("mmmm42")
    assert Letters().decode(found.token_ids) == "mmmmstopE42" and found.finish == "stop" and found.version == 3
    assert found.injected == (4, 9) and found.num_injected == 5
    assert found.logps == [-1.0] * 4 + [0.0] * 5 + [-1.0] * 2
    assert asked[1][0].max_tokens == 6 and asked[1][0].seed != asked[0][0].seed


def test_what_ends_in_time_or_has_ended_its_thinking_is_left_alone() -> None:
    [short, closed], asked = answered("m42", "mmE123456789")
    assert Letters().decode(short.token_ids) == "m42" and not short.num_injected
    assert Letters().decode(closed.token_ids) == "mmE1234567" and not closed.num_injected
    assert closed.finish == "length" and len(asked[1]) == 1


def test_an_answer_too_long_after_the_interruption_is_truncated() -> None:
    [found], _ = answered("mmmm12345678")
    assert Letters().decode(found.token_ids) == "mmmmstopE123456" and found.finish == "length"


def test_each_response_has_a_budget_of_its_own_between_the_bounds() -> None:
    found, asked = answered(*["m" * 30] * 40, low=0.25)
    assert {request.max_tokens for request in asked[0]} == {1, 2, 3, 4}
    assert found == answered(*["m" * 30] * 40, low=0.25)[0]


def test_injected_tokens_are_masked_whatever_is_at_their_places() -> None:
    batch = [Sequence([1], [5, 6, 7, 8], [-1.0, 0.0, 0.0, -1.0], injected=(1, 3), coef=0.5), Sequence([1], [5], [-1.0])]
    laid = tokens(batch, torch.tensor([-1.0, torch.nan, torch.inf, -2.0, -3.0]), None)
    assert laid.mask_T.tolist() == [1.0, 0.0, 0.0, 1.0, 1.0]
    assert laid.trained().logp_T.tolist() == [-1.0, -2.0, -3.0]

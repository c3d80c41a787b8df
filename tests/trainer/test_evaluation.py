import pytest
from vantage_trainer.data import Problem
from vantage_trainer.evaluate import bounds, evaluate, interval, wilson
from vantage_trainer.generation import Completion, Request
from vantage_trainer.rewards.scoring import Scorer
from vantage_trainer.rollout import Sampler, seed_of
from vantage_trainer.spec import EvaluationSet, Reward, Rollout


class Echo:
    """Answer every prompt with its own tokens, and remember what was asked."""

    def __init__(self) -> None:
        self.asked: list[Request] = []

    def generate(self, requests: list[Request]) -> list[Completion]:
        self.asked += requests
        return [Completion(request.prompt_ids, [0.0], "stop", 1) for request in requests]


class Letters:
    eos_token_id = 0

    def decode(self, ids: list[int], *, skip_special_tokens: bool = False) -> str:
        return "".join(map(chr, ids))


def sampler(engine: Echo) -> Sampler:
    return Sampler(engine, Letters(), Scorer(Reward()), Rollout())  # type: ignore[arg-type]


PROBLEMS = [Problem(str(i), "", [ord(str(i))], str(i) if i % 2 else "9") for i in range(6)]


def test_n_and_c_are_kept_for_every_problem() -> None:
    found = evaluate(EvaluationSet(n=4, k=[1, 4]), PROBLEMS, sampler(Echo()), seed_of)
    assert found.n == [4] * 6 and found.c == [0, 4, 0, 4, 0, 4]
    assert found.pass_at == {1: 0.5, 4: 0.5} and found.interval == "normal"
    assert found.metrics()["eval/heldout/mean"] == 0.5
    assert found.metrics("warm_start")["warm_start/heldout/pass@4"] == 0.5


def test_pass_at_every_k_has_an_interval_over_problems() -> None:
    found = evaluate(EvaluationSet(n=4, k=[1, 4]), PROBLEMS, sampler(Echo()), seed_of)
    assert found.bounds[4] == wilson(3, 6)
    assert bounds([4, 4], [1, 3], 1) == interval([4, 4], [1, 3])[:2]
    low, high = bounds([4, 4, 4], [0, 1, 2], 2)
    assert 0.0 <= low < (0 + 1 / 2 + 5 / 6) / 3 < high <= 1.0
    assert found.event()["bounds"] == {str(k): list(ends) for k, ends in found.bounds.items()}


def test_every_sample_has_a_seed_of_its_own_the_same_at_every_evaluation() -> None:
    first, second = Echo(), Echo()
    for engine in (first, second):
        evaluate(EvaluationSet(n=4), PROBLEMS, sampler(engine), seed_of)
    seeds = [request.seed for request in first.asked]
    assert len(set(seeds)) == 24 and seeds == [request.seed for request in second.asked]


def test_the_limit_and_the_temperature_of_the_set_are_used() -> None:
    engine = Echo()
    found = evaluate(EvaluationSet(limit=2, temperature=0.0), PROBLEMS, sampler(engine), seed_of)
    assert found.ids == ["0", "1"] and {request.temperature for request in engine.asked} == {0.0}


def test_a_problem_that_cannot_be_scored_is_left_out_and_counted() -> None:
    broken = [*PROBLEMS, Problem("x", "", [ord("1")], "no number")]
    found = evaluate(EvaluationSet(), broken, sampler(Echo()), seed_of)
    assert len(found.n) == 6 and found.unscored == 1


def test_wilson_agrees_with_published_values() -> None:
    assert wilson(5, 10) == pytest.approx((0.236593, 0.763407), abs=1e-6)
    assert wilson(0, 20) == pytest.approx((0.0, 0.161125), abs=1e-6)


def test_the_interval_over_problems_takes_each_problem_as_one_draw() -> None:
    low, high, kind = interval([4, 4], [0, 4])
    assert kind == "normal" and (low, high) == (0.0, 1.0)

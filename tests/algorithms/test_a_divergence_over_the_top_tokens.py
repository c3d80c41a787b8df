"""DPPO's divergence over the generator's likeliest tokens: the formula, its bounds, and what a batch must hold."""

import math
import random

import pytest
import torch
from vantage_trainer.algorithms.trust_region import MEASURES, TOP_MEASURES
from vantage_trainer.composition import Algorithm
from vantage_trainer.objective import inspect
from vantage_trainer.presets import PRESETS

VOCABULARY, LENGTHS = 7, (3, 1, 4, 2, 0, 5)


def distribution(draw: random.Random) -> list[float]:
    weights = [math.exp(draw.gauss(0, 1)) for _ in range(VOCABULARY)]
    return [math.log(weight / sum(weights)) for weight in weights]


def batch(seed: int, k: int) -> dict:
    """Whole distributions of generator and policy for every token, then what a file holds of them."""
    draw = random.Random(seed)
    found: dict = {"group": [0, 0, 0, 1, 1, 1], "reward": [1.0, 0.0, 0.0, 1.0, 1.0, 0.0]}
    names = ("token_ids", "topk_ids", "topk_logp_behav", "topk_logp_new", "logp_behav", "logp_new", "response_mask")
    found |= {name: [[] for _ in LENGTHS] for name in names}
    for i, length in enumerate(LENGTHS):
        for _ in range(length):
            mu, pi = distribution(draw), distribution(draw)
            token = draw.choices(range(VOCABULARY), [math.exp(value) for value in mu])[0]
            top = sorted(range(VOCABULARY), key=lambda one: -mu[one])[:k]
            values = (token, top, [mu[one] for one in top], [pi[one] for one in top], mu[token], pi[token], 1)
            for name, value in zip(names, values, strict=True):
                found[name][i].append(value)
    return found | {"logp_old": found["logp_new"]}


def dppo(measure: str, form: str, k: int = 3, threshold: float = 0.2) -> Algorithm:
    region = {"kind": "divergence", "measure": measure, "form": form, "k": k, "low": threshold, "high": threshold}
    return Algorithm.model_validate(PRESETS["dppo_tv"].algorithm.model_dump() | {"trust_region": region})


@pytest.mark.parametrize("measure", ["tv", "kl"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_it_equals_plain_loops(measure: str, seed: int, oracle: type) -> None:
    algorithm, inputs = dppo(measure, "topk"), batch(seed, 5)
    found, wanted = inspect(algorithm, inputs, 64), oracle(algorithm, inputs)
    assert found["loss"] == pytest.approx(wanted.loss(), rel=1e-9)
    for i, t in wanted.trained():
        assert found["keep"][i][t] == wanted.keep(i, t)
        assert found["grad_logp"][i][t] == pytest.approx(wanted.gradient(i, t), rel=1e-6, abs=1e-8)


def test_some_tokens_are_blocked_and_some_are_not() -> None:
    found = [
        keep for seed in (1, 2, 3) for row in inspect(dppo("tv", "topk"), batch(seed, 5), 64)["keep"] for keep in row
    ]
    assert 0 < sum(found) < len(found)


@pytest.mark.parametrize("measure", ["tv", "kl"])
def test_binary_is_at_most_top_k_is_at_most_the_whole_and_all_tokens_are_exact(measure: str) -> None:
    draw = random.Random(4)
    for _ in range(200):
        mu, pi = (torch.tensor(distribution(draw), dtype=torch.float64) for _ in range(2))
        token = draw.randrange(VOCABULARY)
        binary = float(MEASURES[measure](mu[[token]], pi[[token]]))
        several = [float(over(measure, mu, pi, token, k)) for k in range(1, VOCABULARY + 1)]
        exact = float((mu.exp() - pi.exp()).abs().sum() / 2 if measure == "tv" else (mu.exp() * (mu - pi)).sum())
        assert several[-1] == pytest.approx(exact, rel=1e-5, abs=1e-7)
        assert all(a <= b + 1e-7 for a, b in zip([binary, *several], [*several, exact], strict=True))


def over(measure: str, mu: torch.Tensor, pi: torch.Tensor, token: int, k: int) -> torch.Tensor:
    chosen = torch.unique(torch.cat([mu.topk(k).indices, torch.tensor([token])]))
    rest = [(1 - log_S[chosen].exp().sum()).clamp(min=1e-12)[None] for log_S in (mu, pi)]
    before, now = (torch.cat([log_S[chosen].exp(), r])[None] for log_S, r in zip((mu, pi), rest, strict=True))
    return TOP_MEASURES[measure](before, now)


def test_only_the_first_k_are_looked_at_and_the_sampled_token_counts_once() -> None:
    wide, narrow = batch(5, 7), batch(5, 3)
    assert inspect(dppo("kl", "topk"), wide, 64)["keep"] == inspect(dppo("kl", "topk"), narrow, 64)["keep"]


@pytest.mark.parametrize("name", ["token_ids", "topk_ids", "topk_logp_behav", "topk_logp_new"])
def test_what_is_missing_or_too_short_is_named(name: str) -> None:
    inputs = batch(1, 3)
    with pytest.raises(ValueError, match=f"inputs.{name}"):
        inspect(dppo("tv", "topk"), {key: value for key, value in inputs.items() if key != name}, 64)
    with pytest.raises(ValueError, match=f"inputs.{name}"):
        inspect(dppo("tv", "topk"), inputs | {name: inputs[name][:-1]}, 64)

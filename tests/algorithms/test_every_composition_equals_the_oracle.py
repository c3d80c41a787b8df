"""Values and gradients of every preset and of every value of every part, against plain loops."""

from collections.abc import Callable

import pytest
from vantage_trainer.composition import Algorithm
from vantage_trainer.objective import inspect
from vantage_trainer.presets import PRESETS
from vantage_trainer.refusals import composition_refusals

RUNNABLE = {name: preset.algorithm for name, preset in PRESETS.items() if not composition_refusals(preset.algorithm)}
GRPO = PRESETS["grpo"].algorithm
PARTS = [
    {"baseline": {"kind": "none"}},
    {"baseline": {"kind": "batch_mean"}},
    {"baseline": {"kind": "ema", "momentum": 0.5}},
    {"baseline": {"kind": "group_leave_one_out"}},
    {"scale": {"kind": "group_std", "std_ddof": 0, "std_eps": 0.1}},
    {"scale": {"kind": "batch_std", "std_ddof": 0}},
    {"scale": {"kind": "batch_whiten", "std_ddof": 0, "std_eps": 0.5}},
    {"scale": {"kind": "group_mean_reward", "zero_success": "keep_minus_one"}},
    {"scale": {"kind": "token_whiten"}},
    {"ratio": {"level": "sequence_geometric"}},
    {"ratio": {"level": "sequence_product"}},
    {"ratio": {"level": "sequence_product"}, "aggregation": {"kind": "sequence_mean_token_sum"}},
    {"ratio": {"level": "sequence_product"}, "trust_region": {"kind": "truncate", "cap": 1.1, "floor": 0.9}},
    {"ratio": {"level": "token", "denominator": "behaviour"}},
    {"trust_region": {"kind": "none"}},
    {"trust_region": {"kind": "clip", "low": 0.1, "high": 0.3, "dual": 1.2}},
    {"trust_region": {"kind": "truncate", "cap": 1.2, "floor": 0.9}},
    {"trust_region": {"kind": "divergence", "measure": "tv", "low": 0.02, "high": 0.05, "cap": 1.1}},
    {"trust_region": {"kind": "divergence", "measure": "kl", "low": 0.002, "high": 0.005}},
    {"aggregation": {"kind": "delta_l", "alpha": 0.5, "length": 7}},
    {"aggregation": {"kind": "sequence_mean_token_sum_norm", "length": 5}},
    {"correction": {"kind": "truncate", "level": "token", "low": 0.9, "high": 1.1}},
    {"correction": {"kind": "truncate", "level": "sequence", "high": 1.05}},
    {"correction": {"kind": "mask", "level": "token", "low": 0.8, "high": 1.25}},
    {"correction": {"kind": "mask", "level": "geometric", "low": 0.9, "high": None}},
    {"correction": {"kind": "reject", "level": "sequence", "low": 0.7, "high": 1.5}},
    {"correction": {"kind": "reject", "level": "token", "low": 0.8, "high": 1.25}},
    {"regularizer": {"kl": {"estimator": "k2", "coef": 0.3}}},
    {"regularizer": {"kl": {"estimator": "k3", "coef": 0.3}}},
    {"regularizer": {"kl": {"estimator": "ratio_k3", "coef": 0.3}}},
    {"regularizer": {"kl": {"estimator": "k2", "coef": 0.3, "level": "sequence"}}},
    {"regularizer": {"kl": {"where": "reward", "estimator": "k1", "coef": 0.1}}},
    {"regularizer": {"kl": {"where": "reward", "estimator": "k3", "coef": 0.1}}},
    {"regularizer": {"kl": {"where": "reward", "estimator": "k2", "coef": 0.1, "level": "sequence"}}},
    {"sampling": {"zero_variance_filter": True}},
    {"sampling": {"dynamic_sampling": {"max_batches": 1}}},
    {"sampling": {"overlong": {"limit": 6, "buffer": 4, "factor": 0.5}}},
    {"sampling": {"overlong": {"limit": 5, "buffer_fraction": 0.5}}},
    {"sampling": {"truncated": "mask"}},
    {"sampling": {"truncated": "zero_reward"}},
]
VARIANTS = [Algorithm.model_validate(GRPO.model_dump() | part) for part in PARTS]
SEEDS = (1, 2)


def agrees(algorithm: Algorithm, inputs: dict, oracle: type) -> None:
    found, wanted = inspect(algorithm, inputs, 64), oracle(algorithm, inputs)
    if wanted.by_token is None:
        assert found["advantages"] == pytest.approx(wanted.advantage, rel=1e-9, abs=1e-12)
    assert found["effective_response"] == [int(part) for part in wanted.effective]
    assert found["loss"] == pytest.approx(wanted.loss(), rel=1e-9, abs=1e-12)
    for i, t in wanted.trained():
        assert found["coef"][i][t] == pytest.approx(wanted.coef[i], rel=1e-12)
        assert found["ratio"][i][t] == pytest.approx(wanted.ratio(i, t, wanted.new), rel=1e-9)
        assert found["keep"][i][t] == wanted.keep(i, t)
        assert found["grad_logp"][i][t] == pytest.approx(wanted.gradient(i, t), rel=1e-6, abs=1e-8)
    idle = {(i, t) for i, row in enumerate(inputs["response_mask"]) for t in range(len(row))} - set(wanted.trained())
    assert all(found["grad_logp"][i][t] == found["weight"][i][t] == found["keep"][i][t] == 0 for i, t in idle)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", RUNNABLE)
def test_a_preset_equals_plain_loops(name: str, seed: int, oracle: type, make_batch: Callable[[int], dict]) -> None:
    agrees(RUNNABLE[name], make_batch(seed), oracle)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("algorithm", VARIANTS, ids=[str(part)[1:60] for part in PARTS])
def test_a_part_equals_plain_loops(
    algorithm: Algorithm, seed: int, oracle: type, make_batch: Callable[[int], dict]
) -> None:
    agrees(algorithm, make_batch(seed), oracle)


CRITICS = [
    {},
    {"scale": {"kind": "none"}},
    {"baseline": {"kind": "critic_gae", "gamma": 0.9, "lam": 0.7, "value_clip": None}},
    {"aggregation": {"kind": "sequence_mean_token_mean"}},
    {"regularizer": {"kl": {"where": "reward", "estimator": "k1", "coef": 0.2, "level": "sequence"}}},
    {"regularizer": {}},
]


@pytest.mark.parametrize("part", CRITICS, ids=[str(part)[1:50] for part in CRITICS])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_critic_equals_its_recursion(part: dict, seed: int, oracle: type, make_batch: Callable[[int], dict]) -> None:
    algorithm, inputs = Algorithm.model_validate(PRESETS["ppo"].algorithm.model_dump() | part), make_batch(seed)
    agrees(algorithm, inputs, oracle)
    found, wanted = inspect(algorithm, inputs, 64), oracle(algorithm, inputs)
    new, places = inputs["value_new"], wanted.trained()
    assert found["value_loss"] == pytest.approx(sum(wanted.value_loss(i, t, new[i][t]) for i, t in places))
    for i, t in places:
        for name in ("advantages", "returns", "token_reward"):
            assert found[name][i][t] == pytest.approx(wanted.by_token[name][i, t], rel=1e-9, abs=1e-12)
        slope = [wanted.value_loss(i, t, new[i][t] + step) for step in (1e-6, -1e-6)]
        assert found["grad_value"][i][t] == pytest.approx((slope[0] - slope[1]) / 2e-6, rel=1e-6, abs=1e-8)


def test_no_preset_is_left_out() -> None:
    assert set(PRESETS) == set(RUNNABLE)


def test_the_gradient_is_coefficient_times_weight_times_advantage(make_batch: Callable[[int], dict]) -> None:
    for algorithm in RUNNABLE.values():
        bare = algorithm.model_copy(update={"regularizer": Algorithm().regularizer})
        found = inspect(bare, make_batch(4), 64)
        for coefs, weights, gradients, advantage in zip(
            found["coef"], found["weight"], found["grad_logp"], found["advantages"], strict=True
        ):
            each = advantage if isinstance(advantage, list) else [advantage] * len(coefs)
            wanted = [-coef * weight * a for coef, weight, a in zip(coefs, weights, each, strict=True)]
            assert gradients == pytest.approx(wanted, rel=1e-9, abs=1e-12)

"""Each test here is a bug that a well-known trainer shipped: finite loss, exit 0, wrong result."""

import math
from collections.abc import Callable

import pytest
import torch
from vantage_trainer.algorithms.credit import Credit, credit
from vantage_trainer.composition import Algorithm
from vantage_trainer.objective import inspect
from vantage_trainer.presets import PRESETS
from vantage_trainer.refusals import composition_refusals

RUNNABLE = [preset.algorithm for preset in PRESETS.values() if not composition_refusals(preset.algorithm)]
IDS = [algorithm.preset for algorithm in RUNNABLE]
GROUPED = [algorithm for algorithm in RUNNABLE if algorithm.baseline.kind.startswith("group")]
GRPO = PRESETS["grpo"].algorithm
Make = Callable[[int], dict]


def credited(algorithm: Algorithm, reward_B: torch.Tensor, group_B: torch.Tensor | None = None) -> Credit:
    num = len(reward_B)
    return credit(
        algorithm,
        reward_B,
        torch.zeros(num, dtype=torch.int64) if group_B is None else group_B,
        torch.ones(num, dtype=torch.int64),
        correct_B=reward_B > 0.5,
        truncated_B=torch.zeros(num, dtype=torch.bool),
        response_limit=64,
        kl_B=torch.zeros(num, dtype=reward_B.dtype),
    )


@pytest.mark.parametrize("value", [2 / 3, 0.7, 0.9, 1e-3, 1e6, -0.1])
@pytest.mark.parametrize("size", [2, 3, 8, 16])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_flat_group_gives_exactly_zero(value: float, size: int, dtype: torch.dtype) -> None:
    for algorithm in GROUPED:
        if algorithm.scale.kind != "group_mean_reward":
            found = credited(algorithm, torch.full((size,), value, dtype=dtype))
            assert found.advantage_B.tolist() == [0.0] * size and found.flat_B.all()


def test_one_reward_for_eight_completions_is_an_error_that_names_both_counts() -> None:
    with pytest.raises(ValueError, match="credit was given 1 rewards for 8 responses"):
        credited(GRPO, torch.tensor([1.0]), torch.zeros(8, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"inputs.reward holds 1 values for 8 responses"):
        inspect(GRPO, {"group": [0] * 8, "reward": [1.0]}, 64)


def test_rewards_that_differ_by_float32_rounding_are_flat_and_a_real_difference_is_not() -> None:
    nearly = torch.tensor([0.1 + 0.2, 0.3, 0.3 + 1e-8], dtype=torch.float32)
    assert credited(GRPO, nearly).advantage_B.tolist() == [0.0] * 3
    close = torch.tensor([0.3, 0.30001], dtype=torch.float64)
    assert credited(GRPO, close).advantage_B[1] > 0.5


def test_one_unscorable_reward_among_four_leaves_the_statistics() -> None:
    found = credited(GRPO, torch.tensor([1.0, torch.nan, 0.0, 0.0], dtype=torch.float64))
    without = credited(GRPO, torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64))
    assert found.advantage_B[[0, 2, 3]].tolist() == without.advantage_B.tolist()
    assert found.advantage_B[1] == 0 and found.effective_B.tolist() == [True, False, True, True]


def test_a_group_that_errors_left_alone_is_dropped_whole_and_flagged() -> None:
    found = credited(GRPO, torch.tensor([1.0, torch.nan, 1.0, 0.0]), torch.tensor([4, 4, 2, 2]))
    assert found.effective_B.tolist() == [False, False, True, True]
    assert found.lone_B.tolist() == [True, True, False, False]


def test_a_batch_without_any_score_takes_no_part_and_stays_finite() -> None:
    for algorithm in RUNNABLE:
        found = credited(algorithm, torch.full((4,), torch.nan))
        assert not found.effective_B.any() and found.advantage_B.tolist() == [0.0] * 4


def test_zero_is_a_score_and_so_are_true_and_whole_numbers() -> None:
    inputs = {"group": [0, 0, 0], "reward": [0.0, True, 0]}
    assert inspect(GRPO, inputs, 64)["advantages"][1] > 1
    assert inspect(GRPO, inputs, 64)["effective_response"] == [1, 1, 1]


@pytest.mark.parametrize("wrong", ["1.0", "", [1.0], {"score": 1}])
def test_what_is_not_a_number_is_refused_by_place(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"inputs.reward\[1\]"):
        inspect(GRPO, {"group": [0, 0], "reward": [1.0, wrong]}, 64)


@pytest.mark.parametrize("algorithm", RUNNABLE, ids=IDS)
def test_nothing_at_a_masked_position_leaks(algorithm: Algorithm, make_batch: Make) -> None:
    inputs = make_batch(11)
    spoiled = dict(inputs)
    for name in ("logp_new", "logp_old", "logp_behav", "logp_ref"):
        spoiled[name] = [
            [value if kept else None for value, kept in zip(row, mask, strict=True)]
            for row, mask in zip(inputs[name], inputs["response_mask"], strict=True)
        ]
    clean, dirty = inspect(algorithm, inputs, 64), inspect(algorithm, spoiled, 64)
    assert dirty["grad_logp"] == clean["grad_logp"] and dirty["loss"] == clean["loss"]


@pytest.mark.parametrize("algorithm", RUNNABLE, ids=IDS)
def test_masked_empty_and_end_only_responses_give_finite_losses(algorithm: Algorithm) -> None:
    inputs = {
        "group": [0, 0, 0, 0],
        "reward": [1.0, 0.0, 0.0, 1.0],
        "response_mask": [[0, 0], [], [1], [1, 1]],
        "logp_new": [[-1.0, -2.0], [], [-0.5], [-0.1, -0.2]],
        "logp_old": [[-1.0, -2.0], [], [-0.6], [-0.1, -0.3]],
        "logp_ref": [[-1.0, -2.0], [], [-0.4], [-0.1, -0.3]],
        "value_old": [[0.1, 0.2], [], [0.3], [0.4, 0.5]],
    }
    found = inspect(algorithm, inputs, 64)
    assert math.isfinite(found["loss"]) and found["effective_response"] == [0, 0, 1, 1]
    assert found["coef"][0] == [0, 0] and found["grad_logp"][1] == []
    nothing = inspect(algorithm, inputs | {"response_mask": [[0, 0], [], [0], [0, 0]]}, 64)
    assert nothing["loss"] == 0 and not any(map(any, nothing["grad_logp"]))


def test_kl_in_the_loss_has_a_gradient_when_every_advantage_is_zero(make_batch: Make, oracle: type) -> None:
    inputs = make_batch(12) | {"reward": [1.0] * 13}
    found, wanted = inspect(GRPO, inputs, 64), oracle(GRPO, inputs)
    assert found["advantages"] == [0.0] * 13
    moved = [found["grad_logp"][i][t] for i, t in wanted.trained()]
    assert sum(value != 0 for value in moved) > len(moved) / 2
    assert moved == pytest.approx([wanted.gradient(i, t) for i, t in wanted.trained()], abs=1e-8)


def test_cispo_keeps_the_gradient_at_ratio_six_where_a_clip_does_not() -> None:
    inputs = {
        "group": [0, 0],
        "reward": [1.0, 0.0],
        "response_mask": [[1], [1]],
        "logp_new": [[-0.1], [-1.0]],
        "logp_old": [[-0.1 - math.log(6)], [-1.0]],
    }
    capped, clipped = (inspect(PRESETS[name].algorithm, inputs, 64) for name in ("cispo", "dapo"))
    assert capped["weight"][0] == [5.0] and capped["keep"][0] == [1] and capped["grad_logp"][0][0] < 0
    assert clipped["keep"][0] == [0] and clipped["grad_logp"][0] == [0]
    assert capped["clip/truncated_weight"] == 0.5 and clipped["clip/high"] == 0.5


def test_dynamic_sampling_looks_at_correctness_and_not_at_the_shaped_reward() -> None:
    inputs = {
        "group": [0, 0, 1, 1],
        "reward": [1.0, 0.6, 1.0, 0.0],
        "correct": [True, True, True, False],
        "response_mask": [[1]] * 4,
    }
    assert inspect(PRESETS["dapo"].algorithm, inputs, 64)["effective_response"] == [0, 0, 1, 1]


def test_maxrl_refuses_rewards_that_are_not_zero_or_one() -> None:
    with pytest.raises(ValueError, match="0 or 1"):
        inspect(PRESETS["maxrl"].algorithm, {"group": [0, 0], "reward": [1.0, 0.5]}, 64)


def test_the_moving_average_compares_with_what_came_before() -> None:
    algorithm = Algorithm.model_validate({"baseline": {"kind": "ema", "momentum": 0.9}})
    reward_B = torch.tensor([1.0, 0.0, 1.0, torch.nan], dtype=torch.float64)
    every = {"correct_B": reward_B > 0.5, "truncated_B": reward_B > 9, "response_limit": 64}
    found = credit(algorithm, reward_B, torch.arange(4), torch.ones(4), ema=0.5, **every)
    assert found.advantage_B.tolist() == [0.5, -0.5, 0.5, 0.0]
    assert float(found.ema) == pytest.approx(0.9 * 0.5 + 0.1 * 2 / 3)
    assert credit(algorithm, reward_B, torch.arange(4), torch.ones(4), **every).advantage_B.tolist() == [1, 0, 1, 0]


def test_log_ratios_are_clamped_and_the_clamp_stops_the_gradient() -> None:
    inputs = {"group": [0, 0], "reward": [1.0, 0.0], "response_mask": [[1], [1]]}
    far = inputs | {"logp_new": [[-30.0], [-0.1]], "logp_old": [[-0.1], [-40.0]]}
    found = inspect(PRESETS["dr_grpo"].algorithm, far, 64)
    assert found["ratio"] == [[pytest.approx(math.exp(-20))], [pytest.approx(math.exp(20))]]
    assert found["grad_logp"] == [[0.0], [0.0]]

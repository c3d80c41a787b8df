"""What must be true between algorithms (section 12 of the formula sheets)."""

import math
from collections.abc import Callable
from itertools import product

import pytest
import torch
from vantage_trainer.algorithms.coefficient import AGGREGATIONS, coefficients
from vantage_trainer.algorithms.credit import credit
from vantage_trainer.algorithms.regularizer import ESTIMATORS
from vantage_trainer.composition import Algorithm
from vantage_trainer.objective import inspect
from vantage_trainer.presets import PRESETS

GROUPED = ["grpo", "dapo", "cispo", "dppo_tv", "dppo_kl", "gspo", "decoupled_ppo", "delta_l", "rloo"]
PLAIN = {"regularizer": {}, "sampling": {}, "correction": {"kind": "none"}}
Make = Callable[[int], dict]


def changed(name: str, **parts: object) -> Algorithm:
    return Algorithm.model_validate(PRESETS[name].algorithm.model_dump() | PLAIN | parts)


def credited(parts: dict, rewards: list[float], group_size: int) -> list[float]:
    reward_B = torch.tensor(rewards, dtype=torch.float64)
    num = len(rewards)
    return credit(
        Algorithm.model_validate(parts),
        reward_B,
        torch.arange(num) // group_size,
        torch.ones(num, dtype=torch.int64),
        correct_B=reward_B > 0.5,
        truncated_B=torch.zeros(num, dtype=torch.bool),
        response_limit=64,
    ).advantage_B.tolist()


def on_policy(inputs: dict) -> dict:
    return {n: v for n, v in inputs.items() if n not in ("logp_old", "logp_behav")} | {
        "reward": finite(inputs["reward"])
    }


def finite(rewards: list[float | None]) -> list[float]:
    return [0.5 if reward is None else reward for reward in rewards]


@pytest.mark.parametrize("name", GROUPED)
def test_on_policy_every_ratio_method_is_reinforce_with_its_coefficients(name: str, make_batch: Make) -> None:
    inputs = on_policy(make_batch(1))
    algorithm = changed(name)
    bare = algorithm.model_dump() | {"ratio": {"level": "none"}, "trust_region": {"kind": "none"}}
    found, plain = inspect(algorithm, inputs, 64), inspect(Algorithm.model_validate(bare), inputs, 64)
    for mine, theirs in zip(found["grad_logp"], plain["grad_logp"], strict=True):
        assert mine == pytest.approx(theirs, rel=1e-12)


def test_leave_one_out_is_the_group_mean_scaled_up() -> None:
    rewards = [1.0, 0.0, 0.3, -2.0, 5.0, 5.0, 1.0, 0.0]
    mean = credited({"baseline": {"kind": "group_mean"}}, rewards, 4)
    others = credited({"baseline": {"kind": "group_leave_one_out"}}, rewards, 4)
    assert others == pytest.approx([4 / 3 * value for value in mean])


@pytest.mark.parametrize("baseline", ["group_mean", "group_leave_one_out"])
@pytest.mark.parametrize("scale", ["none", "group_std", "batch_std"])
def test_a_constant_per_prompt_changes_no_group_method(baseline: str, scale: str) -> None:
    parts = {"baseline": {"kind": baseline}, "scale": {"kind": scale}}
    rewards = [1.0, 0.0, 0.25, 1.0, 0.5, 0.0]
    moved = [reward + (8.0 if index < 3 else -4.0) for index, reward in enumerate(rewards)]
    assert credited(parts, moved, 3) == pytest.approx(credited(parts, rewards, 3))


def test_dividing_by_the_group_deviation_forgets_the_unit_of_reward() -> None:
    parts = {"baseline": {"kind": "group_mean"}, "scale": {"kind": "group_std", "std_eps": 0}}
    rewards = [1.0, 0.0, 0.25, 1.0, 0.5, 0.0]
    assert credited(parts, [7 * reward for reward in rewards], 3) == pytest.approx(credited(parts, rewards, 3))


def test_maxrl_is_dr_grpo_over_the_success_rate() -> None:
    rewards = [1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0]
    plain = credited({"baseline": {"kind": "group_mean"}}, rewards, 4)
    scaled = credited({"baseline": {"kind": "group_mean"}, "scale": {"kind": "group_mean_reward"}}, rewards, 4)
    assert scaled == pytest.approx([value / rate for value, rate in zip(plain, [0.25] * 4 + [0.75] * 4, strict=True)])


def weights(kind: str, lengths: list[int], groups: list[int], **more: object) -> list[float]:
    part = Algorithm.model_validate({"aggregation": {"kind": kind, **more}}).aggregation
    every = torch.ones(len(lengths), dtype=torch.bool)
    return coefficients(part, torch.tensor(lengths), torch.tensor(groups), every, response_limit=10).tolist()


def test_equal_lengths_and_groups_make_all_aggregations_agree_up_to_a_constant() -> None:
    for kind in AGGREGATIONS:
        found = weights(kind, [5] * 6, [0, 0, 1, 1, 2, 2])
        assert found == pytest.approx([found[0]] * 6)


def test_aggregations_meet_where_the_sheets_say_so() -> None:
    lengths, alone = [3, 1, 4, 2, 6, 2], list(range(6))
    assert weights("prompt_mean", lengths, alone) == pytest.approx(weights("sequence_mean_token_mean", lengths, alone))
    even = [0, 1, 0, 2, 2, 1]
    lengths = [3, 4, 3, 2, 4, 2]
    assert weights("prompt_mean", lengths, even) == pytest.approx(weights("token_mean", lengths, even))
    flat = weights("delta_l", lengths, even, alpha=0.0)
    assert flat == pytest.approx(weights("sequence_mean_token_sum_norm", lengths, even))


def test_an_unbounded_divergence_is_an_unbounded_cap_is_off_policy_reinforce(make_batch: Make) -> None:
    inputs = make_batch(2)
    wide = {"kind": "divergence", "low": 1e9, "high": 1e9}
    regions = [wide, {"kind": "truncate", "cap": 1e9}, {"kind": "none"}]
    found = [inspect(changed("cispo", trust_region=region), inputs, 64)["grad_logp"] for region in regions]
    assert found[0] == found[1] == found[2]


def test_what_the_wider_clip_blocks_the_narrower_blocks_too(make_batch: Make) -> None:
    for seed in range(5):
        narrow = inspect(changed("grpo"), make_batch(seed), 64)["keep"]
        wide = inspect(changed("grpo", trust_region={"kind": "clip", "high": 0.28}), make_batch(seed), 64)["keep"]
        assert all(a <= b for row, other in zip(narrow, wide, strict=True) for a, b in zip(row, other, strict=True))


def test_a_flat_group_changes_nothing_with_the_filter_and_dilutes_without(make_batch: Make) -> None:
    inputs = on_policy(make_batch(3))
    kept = [i for i, label in enumerate(inputs["group"]) if label in (7, 3)]
    mixed = {name: [rows[i] for i in kept] for name, rows in inputs.items()}
    both = [i for i, label in enumerate(inputs["group"]) if label in (7, 3, 5)]
    diluted = {name: [rows[i] for i in both] for name, rows in inputs.items()}
    filtered = changed("dapo", sampling={"zero_variance_filter": True})
    there = [row for row, i in zip(inspect(filtered, diluted, 64)["grad_logp"], both, strict=True) if i in kept]
    assert there == inspect(filtered, mixed, 64)["grad_logp"]
    plain = [row for row, i in zip(inspect(changed("dapo"), diluted, 64)["grad_logp"], both, strict=True) if i in kept]
    share = sum(map(sum, mixed["response_mask"])) / sum(map(sum, diluted["response_mask"]))
    for row, whole in zip(plain, there, strict=True):
        assert row == pytest.approx([share * value for value in whole], rel=1e-9)


ESTIMATED = {
    "rloo": ({"baseline": {"kind": "group_leave_one_out"}}, lambda p, n: 1.0),
    "dr_grpo": ({"baseline": {"kind": "group_mean"}}, lambda p, n: (n - 1) / n),
    "maxrl": (
        {"baseline": {"kind": "group_mean"}, "scale": {"kind": "group_mean_reward"}},
        lambda p, n: sum((1 - p) ** k for k in range(n - 1)),
    ),
    "maxrl_keep": (
        {"baseline": {"kind": "group_mean"}, "scale": {"kind": "group_mean_reward", "zero_success": "keep_minus_one"}},
        lambda p, n: (1 - (1 - p) ** n) / p,
    ),
}


@pytest.mark.parametrize("name", ESTIMATED)
@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
def test_the_expected_gradient_is_that_of_the_stated_objective(name: str, p: float) -> None:
    parts, slope = ESTIMATED[name]
    size, expected = 4, 0.0
    for rewards in product([0.0, 1.0], repeat=size):
        chance = math.prod(p if reward else 1 - p for reward in rewards)
        scores = [1 / p if reward else -1 / (1 - p) for reward in rewards]
        advantages = credited(parts, list(rewards), size)
        expected += chance * sum(a * s for a, s in zip(advantages, scores, strict=True)) / size
    assert expected == pytest.approx(slope(p, size), rel=1e-9)


def test_the_kl_estimators_have_the_gradients_of_the_table() -> None:
    logits = torch.tensor([0.3, -0.2, 0.9, 0.1], dtype=torch.float64, requires_grad=True)
    reference = torch.tensor([0.1, 0.4, 0.2, -0.5], dtype=torch.float64).log_softmax(0)
    current = logits.log_softmax(0)
    forward = (reference.exp() * (reference - current)).sum()
    backward = (current.exp() * (current - reference)).sum()
    wanted = {"k1": 0 * backward, "k2": backward, "k3": forward, "ratio_k3": backward}
    for name, value in wanted.items():
        samples = ESTIMATORS[name](current - reference, current - current.detach())
        mean = (current.detach().exp() * samples).sum()
        (found,) = torch.autograd.grad(mean, logits, retain_graph=True)
        (exact,) = torch.autograd.grad(value, logits, retain_graph=True)
        torch.testing.assert_close(found, exact, rtol=1e-10, atol=1e-12)


def test_kl_in_the_reward_is_the_sequence_form_and_not_the_token_form() -> None:
    """Enumerate two tokens over three words: E[k1 of the sequence x score] against both losses."""
    first, second, reference = torch.randn(3, 3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    logits = [first[0].clone().requires_grad_(), second.clone().requires_grad_()]
    reference = reference.log_softmax(-1)
    totals = {"reward": 0.0, "sequence": 0.0, "token": 0.0}
    for a, b in product(range(3), repeat=2):
        logp = [logits[0].log_softmax(0)[a], logits[1].log_softmax(1)[a, b]]
        d = torch.stack([logp[0] - reference[0, a], logp[1] - reference[1, b]])
        chance = (logp[0] + logp[1]).exp().detach()
        totals["reward"] += chance * d.sum().detach() * (logp[0] + logp[1])
        totals["sequence"] += chance * ESTIMATORS["k2"](d.sum(), d.sum())
        totals["token"] += chance * ESTIMATORS["k2"](d, d).sum()
    grads = {name: torch.autograd.grad(total, logits, retain_graph=True) for name, total in totals.items()}
    torch.testing.assert_close(grads["reward"], grads["sequence"], rtol=1e-10, atol=1e-12)
    assert not torch.allclose(grads["reward"][0], grads["token"][0], rtol=1e-2)

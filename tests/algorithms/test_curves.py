"""The curves of an algorithm's page are the trainer's own numbers and follow the sheets' formulas."""

import math
from typing import Any

import pytest
from vantage_trainer import composition as parts
from vantage_trainer.composition import Algorithm
from vantage_trainer.curves import EMA, curves
from vantage_trainer.presets import PRESETS

GRPO = PRESETS["grpo"].algorithm


def drawn(algorithm: Algorithm, num: int = 8, limit: int = 64) -> dict[str, Any]:
    return curves(algorithm, num, limit)


def weights(algorithm: Algorithm, sign: int, **situation: float) -> list[tuple[float, float]]:
    curve = drawn(algorithm)["weight"]
    chosen = [
        line
        for line in curve["lines"]
        if line["sign"] == sign and all(line[name] == value for name, value in situation.items())
    ]
    assert len(chosen) == 1
    return [(x, y) for x, y in zip(curve["ratio"], chosen[0]["weight"], strict=True) if y is not None]


@pytest.mark.parametrize("name", list(PRESETS))
def test_every_preset_has_its_curves_in_finite_numbers_or_gaps(name: str) -> None:
    found = drawn(PRESETS[name].algorithm)
    assert len(found["weight"]["lines"]) in (2, 6)
    assert found["advantage"]["right"][0] is None and found["advantage"]["wrong"][-1] is None
    assert all(math.isfinite(value) for value in found["advantage"]["slope"])
    assert all(value > 0 for line in found["coefficient"]["lines"] for value in line["coef"])


def test_a_clip_blocks_what_the_advantage_pushes_out_of_the_band() -> None:
    dapo = PRESETS["dapo"].algorithm
    assert all(w == pytest.approx(rho if rho <= 1.28 else 0, rel=1e-5) for rho, w in weights(dapo, 1))
    assert all(w == pytest.approx(rho if rho >= 0.8 else 0, rel=1e-5) for rho, w in weights(dapo, -1))


def test_a_dual_clip_blocks_large_ratios_of_negative_advantages() -> None:
    dual = GRPO.model_copy(update={"trust_region": parts.Clip(dual=2)})
    assert all((w == 0) == (rho < 0.8 or rho > 2) for rho, w in weights(dual, -1))


def test_a_truncated_weight_keeps_every_gradient() -> None:
    capped = GRPO.model_copy(update={"trust_region": parts.Truncate(cap=2, floor=0.5)})
    assert all(w == pytest.approx(min(max(rho, 0.5), 2), rel=1e-5) for rho, w in weights(capped, -1))


def test_a_divergence_lets_rare_tokens_move_further() -> None:
    dppo = PRESETS["dppo_tv"].algorithm
    for anchor in (0.02, 0.2, 0.7):
        for rho, w in weights(dppo, 1, anchor=anchor):
            assert w == pytest.approx(rho if (rho - 1) * anchor <= 0.15 else 0, rel=1e-5), (anchor, rho)
    assert max(rho for rho, _ in weights(dppo, 1, anchor=0.7)) <= 1 / 0.7


def test_a_correction_is_drawn_for_a_generator_above_and_below_the_trainer() -> None:
    corrected = PRESETS["decoupled_ppo"].algorithm
    for mismatch in (1.0, 0.3, 4.0):
        inside = [w / rho for rho, w in weights(corrected, 1, mismatch=mismatch) if rho < 1]
        assert inside == pytest.approx([min(mismatch, 2)] * len(inside), rel=1e-4)


def test_without_a_ratio_every_token_weighs_the_same() -> None:
    assert {w for _, w in weights(PRESETS["rloo"].algorithm, 1)} == {1.0}


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("dr_grpo", lambda p: 1 - p, lambda p: -p),
        ("rloo", lambda p: (1 - p) * 8 / 7, lambda p: -p * 8 / 7),
        ("maxrl", lambda p: (1 - p) / p, lambda p: -1),
        ("grpo", lambda p: math.sqrt((1 - p) / p * 7 / 8), lambda p: -math.sqrt(p / (1 - p) * 7 / 8)),
    ],
)
def test_advantages_follow_the_sheets(name: str, right: Any, wrong: Any) -> None:
    curve = drawn(PRESETS[name].algorithm)["advantage"]
    for rate, up, down in list(zip(curve["rate"], curve["right"], curve["wrong"], strict=True))[1:-1]:
        assert up == pytest.approx(right(rate), rel=1e-4)
        assert down == pytest.approx(wrong(rate), rel=1e-4)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rloo", lambda p, n: 1),
        ("dr_grpo", lambda p, n: (n - 1) / n),
        ("maxrl", lambda p, n: sum((1 - p) ** k for k in range(n - 1))),
    ],
)
@pytest.mark.parametrize("num", [2, 8, 16])
def test_the_induced_objective_is_that_of_the_table(name: str, expected: Any, num: int) -> None:
    curve = drawn(PRESETS[name].algorithm, num)["advantage"]
    for p, slope in zip(curve["p"], curve["slope"], strict=True):
        assert slope == pytest.approx(expected(p, num), rel=1e-4)


def test_grpo_tends_to_the_arcsine_law_with_the_group_size() -> None:
    exact = GRPO.model_copy(update={"scale": parts.GroupStd(std_ddof=0, std_eps=0)})
    curve = drawn(exact, 256)["advantage"]
    found = dict(zip(curve["p"], curve["slope"], strict=True))
    assert found[0.5] == pytest.approx(2, rel=0.02)
    assert found[0.2] == pytest.approx(1 / math.sqrt(0.2 * 0.8), rel=0.02)


def test_groups_that_take_no_part_leave_a_gap() -> None:
    filtered = GRPO.model_copy(update={"sampling": parts.Sampling(zero_variance_filter=True)})
    curve = drawn(filtered)["advantage"]
    assert curve["right"][-1] is None and curve["wrong"][0] is None
    assert drawn(GRPO)["advantage"]["right"][-1] == 0


def test_a_moving_average_and_a_critic_are_told_where_they_stand() -> None:
    average = GRPO.model_copy(update={"baseline": parts.Ema(), "scale": parts.NoScale()})
    assert set(drawn(average)["advantage"]["right"][1:]) == {1 - EMA}
    critic = PRESETS["ppo"].algorithm.model_copy(update={"scale": parts.NoScale()})
    assert drawn(critic)["advantage"]["right"][1:] == pytest.approx([1 - k / 8 for k in range(1, 9)])


@pytest.mark.parametrize(
    ("part", "power"),
    [
        (parts.TokenMean(), 0),
        (parts.SequenceMeanTokenMean(), -1),
        (parts.SequenceMeanTokenSum(), 0),
        (parts.DeltaL(alpha=0.75), -0.75),
    ],
)
def test_a_coefficient_is_a_power_of_the_length(part: Any, power: float) -> None:
    long, short = drawn(GRPO.model_copy(update={"aggregation": part}))["coefficient"]["lines"]
    points = list(zip(long["length"] + short["length"], long["coef"] + short["coef"], strict=True))
    first = points[0]
    assert all(c / first[1] == pytest.approx((n / first[0]) ** power, rel=1e-4) for n, c in points)


def test_a_mean_per_prompt_gives_the_tokens_of_short_answers_more() -> None:
    long, short = drawn(PRESETS["dapo_paper"].algorithm)["coefficient"]["lines"]
    for line in (long, short):
        assert line["coef"] == pytest.approx([1 / (2 * sum(line["length"]))] * 8, rel=1e-4)


@pytest.mark.parametrize(("num", "limit"), [(1, 64), (257, 64), (8, 0), (8, 10**9)])
def test_sizes_without_meaning_get_a_sentence(num: int, limit: int) -> None:
    with pytest.raises(ValueError, match="Curves need a"):
        curves(GRPO, num, limit)

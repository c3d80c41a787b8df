"""The worked cases and the tables of the formula sheets, read by the objective as the files stand."""

import math
from collections.abc import Callable, Iterator

import pytest
from vantage_trainer.composition import Algorithm
from vantage_trainer.objective import estimate, inspect
from vantage_trainer.pass_at_k import pass_at_k
from vantage_trainer.presets import PRESETS

Case = Callable[[str], dict]
MEAN = {"baseline": {"kind": "group_mean"}}
CREDITS = {
    "grpo": MEAN | {"scale": {"kind": "group_std"}},
    "dr_grpo": MEAN,
    "rloo": {"baseline": {"kind": "group_leave_one_out"}},
    "maxrl": MEAN | {"scale": {"kind": "group_mean_reward"}},
}
DEVIATIONS = {
    "ddof1_eps1e-6": (1, 1e-6),
    "ddof1_eps1e-4": (1, 1e-4),
    "ddof1_eps1e-8": (1, 1e-8),
    "ddof0_eps0": (0, 0),
    "ddof0_eps1e-6": (0, 1e-6),
}
MODES = {
    "token_mean": {"kind": "token_mean"},
    "seq_mean_token_mean": {"kind": "sequence_mean_token_mean"},
    "seq_mean_token_sum": {"kind": "sequence_mean_token_sum"},
    "seq_mean_token_sum_norm": {"kind": "sequence_mean_token_sum_norm", "length": 8},
    "prompt_mean": {"kind": "prompt_mean"},
    "delta_l": {"kind": "delta_l", "alpha": 1.0, "length": 8},
}
BASE = {
    "group": [0, 0, 0, 1, 1, 1],
    "reward": [1.0, 0.0, 0.0, 1.0, 1.0, 0.0],
    "response_mask": [[1] * 3, [1] * 2, [1] * 4, [1], [1] * 3, [1] * 2],
}
PI = [[0.55, 0.262, 0.0125], [0.30, 0.74], [0.37, 0.60, 0.02, 0.63], [0.88], [0.19, 0.20, 0.96], [0.55, 0.33]]
MU = [[0.48, 0.21, 0.004], [0.41, 0.90], [0.29, 0.82, 0.12, 0.61], [0.69], [0.26, 0.02, 0.94], [0.018, 0.34]]


def composed(**parts: object) -> Algorithm:
    return Algorithm.model_validate(parts)


def close(found: object, wanted: object) -> None:
    assert list(numbers(found)) == pytest.approx(list(numbers(wanted)), rel=1e-6, abs=1e-6)


def numbers(rows: object) -> Iterator[float]:
    if isinstance(rows, list):
        for row in rows:
            yield from numbers(row)
    else:
        yield rows


def credits_of(case: Case, parts: dict) -> list[float]:
    return inspect(composed(**parts), case("advantages")["inputs"], 64)["advantages"]


@pytest.mark.parametrize("name", DEVIATIONS)
def test_group_deviation_under_every_convention(name: str, case: Case) -> None:
    ddof, eps = DEVIATIONS[name]
    parts = MEAN | {"scale": {"kind": "group_std", "std_ddof": ddof, "std_eps": eps}}
    close(credits_of(case, parts), case("advantages")["expected"]["group_std"][name])


@pytest.mark.parametrize("name", ["dr_grpo", "rloo", "maxrl"])
def test_baselines_of_the_base_batch(name: str, case: Case) -> None:
    close(credits_of(case, CREDITS[name]), case("advantages")["expected"][name])


def test_batch_deviation_and_whitening(case: Case) -> None:
    expected = case("advantages")["expected"]
    close(credits_of(case, MEAN | {"scale": {"kind": "batch_std"}}), expected["batch_std"]["advantages"])
    bare = MEAN | {"scale": {"kind": "batch_std", "std_ddof": 0, "std_eps": 0}}
    close(credits_of(case, bare), expected["batch_std_ddof0_eps0"]["advantages"])
    close(credits_of(case, MEAN | {"scale": {"kind": "batch_whiten"}}), expected["batch_whiten_brorl"]["advantages"])


def test_every_edge_case_of_credit(case: Case) -> None:
    for edge in case("advantages")["expected"]["edge_cases"].values():
        inputs = {"group": edge["group"], "reward": edge["reward"]}
        for name, wanted in edge["expected"].items():
            close(inspect(composed(**CREDITS[name]), inputs, 64)["advantages"], wanted)


@pytest.mark.parametrize("mode", MODES)
def test_an_aggregation_gives_its_coefficients_and_loss(mode: str, case: Case) -> None:
    found = inspect(dapo_like(mode), case("aggregation")["inputs"], 64)
    close(found["coef"], case("aggregation")["expected"]["modes"][mode]["agg_coef"])
    close(found["loss"], case("aggregation")["expected"]["modes"][mode]["loss"])
    close(found["token_loss"], case("aggregation")["expected"]["token_loss"])


@pytest.mark.parametrize("mode", ["token_mean", "seq_mean_token_mean", "seq_mean_token_sum", "prompt_mean"])
def test_a_fully_masked_response_leaves_the_counts(mode: str, case: Case) -> None:
    expected = case("aggregation")["expected"]["fully_masked_response"]
    found = inspect(dapo_like(mode), case("aggregation")["inputs"] | {"response_mask": expected["response_mask"]}, 64)
    close(found["coef"], expected[mode]["agg_coef"])
    close(found["loss"], expected[mode]["loss"])


def dapo_like(mode: str) -> Algorithm:
    return PRESETS["dapo"].algorithm.model_copy(update={"aggregation": composed(aggregation=MODES[mode]).aggregation})


def test_grpo_with_and_without_its_kl(case: Case) -> None:
    expected, inputs = case("grpo")["expected"], case("grpo")["inputs"]
    grpo = PRESETS["grpo"].algorithm
    found = inspect(grpo, inputs, 64)
    close(found["loss"], expected["kl"]["loss_with_kl"])
    close(found["grad_logp"], expected["kl"]["grad_logp_with_kl"])
    bare = inspect(grpo.model_copy(update={"regularizer": Algorithm().regularizer}), inputs, 64)
    for mine, theirs in {"coef": "agg_coef", "advantages": "advantages", "token_loss": "token_loss"}.items():
        close(bare[mine], expected[theirs])
    close([bare["ratio"], bare["grad_logp"], bare["loss"]], [expected[n] for n in ("ratio", "grad_logp", "loss")])
    assert bare["keep"] == expected["keep"]


def test_the_dual_clip_stops_only_what_is_far_out_and_negative(case: Case) -> None:
    expected = case("grpo")["expected"]["dual_clip_c3"]
    parts = PRESETS["grpo"].algorithm.model_dump() | {"regularizer": {}}
    found = inspect(composed(**parts | {"trust_region": {"kind": "clip", "dual": 3.0}}), case("grpo")["inputs"], 64)
    close([found["token_loss"], found["loss"]], [expected["token_loss"], expected["loss"]])
    close(found["grad_logp"], expected["grad_logp"])
    assert found["keep"] == expected["keep"]


def test_masks_and_clip_metrics_of_the_base_batch(case: Case) -> None:
    inputs = case("aggregation")["inputs"]
    parts = PRESETS["dapo"].algorithm.model_dump() | {"trust_region": {"kind": "clip", "high": 0.28, "dual": 3.0}}
    keep = inspect(PRESETS["dapo"].algorithm, inputs, 64)["keep"]
    assert keep == [[1, 0, 1], [0, 1], [1, 0, 0, 1], [1], [1, 0, 1], [1, 1]]
    found = inspect(composed(**parts), inputs, 64)
    measured = [found[f"clip/{name}"] for name in ("low", "high", "fraction", "dual")]
    close(measured, [0.2, 0.133333, 0.333333, 0.066667])


def test_the_divergence_mask_is_anchored_to_the_generator() -> None:
    inputs = BASE | {"logp_new": logs(PI), "logp_behav": logs(MU)}
    found = inspect(PRESETS["dppo_tv"].algorithm, inputs, 64)
    assert found["keep"] == [[1, 1, 1], [1, 0], [1, 0, 1, 1], [0], [1, 0, 1], [1, 1]]


def logs(rows: list[list[float]]) -> list[list[float]]:
    return [[math.log(p) for p in row] for row in rows]


def test_pass_at_k_by_hand_and_from_the_file(case: Case) -> None:
    expected, inputs = case("pass_at_k")["expected"], case("pass_at_k")["inputs"]
    found = estimate(inputs)
    close([found["value"], found["benchmark_mean"]], [expected["value"], expected["benchmark_mean"]])
    for wrong in expected["errors"]:
        with pytest.raises(ValueError):
            pass_at_k(**wrong)

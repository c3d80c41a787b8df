"""`python -m vantage_trainer.objective`: files in, standard JSON out, a sentence where they do not fit."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from vantage_trainer import objective
from vantage_trainer.composition import Algorithm
from vantage_trainer.presets import PRESETS

CASES = Path(__file__).parent / "cases"
BASE = json.loads((CASES / "aggregation.json").read_text())["inputs"]


def ask(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr(sys, "argv", ["objective", *map(str, words)])
    return objective.main()


def test_a_preset_answers_a_case_file_as_it_stands() -> None:
    command = [sys.executable, "-m", "vantage_trainer.objective", "--algorithm", "grpo", "--batch", CASES / "grpo.json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["loss"] == pytest.approx(0.368986754736, rel=1e-6)
    assert len(found["grad_logp"]) == 6 and found["clip/low"] == pytest.approx(0.2)


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_composition_comes_from_a_file_and_a_preset_by_name(
    wrapped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = PRESETS["dapo"].algorithm.model_dump()
    (tmp_path / "a.json").write_text(json.dumps({"source": "ours", "algorithm": parts} if wrapped else parts))
    for name in (tmp_path / "a.json", "dapo"):
        assert ask(monkeypatch, "--algorithm", name, "--batch", CASES / "aggregation.json") == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == second


def test_the_response_limit_comes_from_the_command_the_batch_or_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bare.json").write_text(json.dumps({"inputs": BASE}))
    (tmp_path / "own.json").write_text(json.dumps({"inputs": BASE | {"response_limit": 16}}))
    ask(monkeypatch, "--algorithm", "dr_grpo", "--batch", tmp_path / "bare.json")
    ask(monkeypatch, "--algorithm", "dr_grpo", "--batch", tmp_path / "own.json")
    ask(monkeypatch, "--algorithm", "dr_grpo", "--batch", tmp_path / "own.json", "--response-limit", 4)
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [answer["response_limit"] for answer in answers] == [64, 16, 4]
    assert [answer["coef"][0][0] for answer in answers] == pytest.approx([1 / 6 / 64, 1 / 6 / 16, 1 / 6 / 4])


@pytest.mark.parametrize(
    ("algorithm", "inputs", "said"),
    [
        ("nonsense", BASE, "neither a preset nor a file"),
        ("ppo", BASE | {"logp_ref": BASE["logp_old"]}, "inputs.value_old"),
        ("grpo", BASE, "inputs.logp_ref"),
        ("dapo", BASE | {"reward": [1.0] * 5}, "5 values for 6 responses"),
        ("dapo", BASE | {"logp_old": [[-1.0]] * 6}, "inputs.logp_old[0] holds 1 values and response_mask 3"),
        ("dapo", BASE | {"reward": ["1"] * 6}, "inputs.reward[0] is '1'"),
        ("dapo", {"reward": [1.0]}, "inputs.group is missing"),
        ("dapo", BASE | {"group": [0, 0, None, 1, 1, 1]}, "whole numbers"),
    ],
)
def test_what_does_not_fit_gets_a_sentence_and_no_stack(
    algorithm: str,
    inputs: dict,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "b.json").write_text(json.dumps({"inputs": inputs}))
    assert ask(monkeypatch, "--algorithm", algorithm, "--batch", tmp_path / "b.json") == 2
    assert said in capsys.readouterr().err


def test_an_impossible_composition_is_refused_here_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = {"ratio": {"level": "token", "denominator": "behaviour"}, "correction": {"kind": "truncate"}}
    for content in (parts, {"scale": {"kind": "foo"}}, ["no"]):
        (tmp_path / "a.json").write_text(json.dumps(content))
        assert ask(monkeypatch, "--algorithm", tmp_path / "a.json", "--batch", CASES / "grpo.json") == 2
    assert "Traceback" not in capsys.readouterr().err


def test_null_rewards_and_numbers_beyond_json_stay_standard_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = BASE | {"reward": [1.0, None, 0.0, 1.0, float("inf"), 0.0]}
    (tmp_path / "b.json").write_text(json.dumps({"inputs": inputs}))
    assert ask(monkeypatch, "--algorithm", "dr_grpo", "--batch", tmp_path / "b.json") == 0
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert found["effective_response"] == [1, 0, 1, 1, 0, 1] and found["shaped_reward"][1] is None


BATCH = BASE | {
    "truncated": [True, False, False, True, False, False],
    "logp_ref": [[v - 0.3 for v in row] for row in BASE["logp_old"]],
    "logp_behav": [[v - 0.1 * i - 0.05 for i, v in enumerate(row)] for row in BASE["logp_old"]],
    "entropy": [[0.5] * len(row) for row in BASE["logp_old"]],
}
OPTIONS = {
    "scale": [{"kind": "group_std", "std_ddof": 0}, {"kind": "group_std", "std_eps": 0.5}, {"kind": "batch_std"}],
    "ratio": [{"level": n} for n in ("none", "sequence_geometric", "sequence_product")]
    + [{"denominator": "behaviour"}],
    "trust_region": [{"kind": "clip", "low": 0.4}, {"kind": "clip", "high": 0.4}, {"kind": "clip", "dual": 3.0}],
    "aggregation": [{"kind": "delta_l", "alpha": 0.3}, {"kind": "delta_l", "length": 9}, {"kind": "prompt_mean"}],
    "correction": [
        {"kind": k, "level": n, "low": 1.06, "high": 1.3}
        for k in ("truncate", "mask", "reject")
        for n in ("token", "sequence", "geometric")
    ],
    "regularizer": [
        {"kl": {"estimator": k, "level": n}} for k in ("k2", "k3", "ratio_k3") for n in ("token", "sequence")
    ]
    + [{"kl": {"where": "reward", "coef": 0.2}}, {"kl": {"coef": 0.2}}, {"entropy": {"coef": 0.01}}],
    "sampling": [{"truncated": "mask"}, {"truncated": "zero_reward"}, {"overlong": {"limit": 4, "buffer": 2}}],
}


def test_every_option_changes_something_and_no_two_give_the_same() -> None:
    start = PRESETS["grpo"].algorithm.model_dump() | {"regularizer": {}}
    algorithms = [start] + [start | {part: value} for part, values in OPTIONS.items() for value in values]
    answers = [objective.inspect(Algorithm.model_validate(parts), BATCH, 64) for parts in algorithms]
    kept = [json.dumps([answer["loss"], answer["grad_logp"]]) for answer in answers]
    assert len(set(kept)) == len(kept)


def test_responses_without_listed_tokens_count_with_their_stated_length() -> None:
    inputs = {"group": [0, 0], "reward": [1, 0], "length": [9, 6], "response_mask": [[1, 1], []]}
    inputs |= {"logp_new": [[-1.0, -2.0], []]}
    found = objective.inspect(PRESETS["cispo"].algorithm, inputs, 64)
    assert found["coef"] == [[pytest.approx(1 / 8)] * 2, []]
    for odd in ([1.5, 2], [-1, 2], [None, 2], [1]):
        with pytest.raises(ValueError, match=r"inputs\.length"):
            objective.inspect(PRESETS["cispo"].algorithm, inputs | {"length": odd}, 64)

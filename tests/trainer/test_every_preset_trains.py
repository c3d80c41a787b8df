"""Every preset takes steps on real engines: one generator and one policy serve them all, weights reset by a push."""

import math
import os
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
import torch
from one_engine_pair import EnginePair, journal_of, with_algorithm
from vantage_trainer import checkpoint, loop, metrics
from vantage_trainer.arithmetic import generate
from vantage_trainer.composition import Interruption, NoPositiveResampling, Sampling
from vantage_trainer.engine_state import AdamState
from vantage_trainer.failure import Failure
from vantage_trainer.prepare import resume
from vantage_trainer.presets import PRESETS
from vantage_trainer.recipes import demo_spec
from vantage_trainer.refusals import refusals
from vantage_trainer.run import Run
from vantage_trainer.spec import RunSpec
from vantage_trainer.tiny import make_tiny

pytestmark = pytest.mark.engine
STEPS = 2
CLOCKS = ("time/", "tokens/per_second", "compute/device_hours")


def short_spec() -> RunSpec:
    spec = demo_spec(seed=5)
    assert spec.warm_start is not None
    spec.warm_start.steps, spec.budget.steps, spec.evaluation.sets = 150, STEPS, []
    spec.rollout.prompts_per_step, spec.rollout.group_size, spec.rollout.response_limit = 8, 4, 8
    return spec


def runnable(name: str) -> RunSpec:
    spec = with_algorithm(short_spec(), PRESETS[name].algorithm)
    if spec.algorithm.sampling.interruption:
        spec.rollout.thinking_budget = 4
    return spec


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EnginePair]:
    torch.set_num_threads(1)
    with patch.dict(os.environ, {"OMP_NUM_THREADS": "1"}):  # nor may which rank this is reach a trainer started later
        pair = EnginePair(tmp_path_factory.mktemp("engines"), short_spec(), generate(48, 1, terms=2), [])
        yield pair
        pair.close()


@pytest.fixture(scope="module")
def start(pair: EnginePair) -> AdamState:
    return pair.warmed(short_spec())


def steps_of(run: Run) -> dict[int, dict[str, float]]:
    """Each step's metrics but those that a clock decides."""
    found = {row["step"]: row["values"] for row in journal_of(run, "metrics")}
    return {step: {k: v for k, v in values.items() if not k.startswith(CLOCKS)} for step, values in found.items()}


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_takes_steps_that_move_the_weights(name: str, pair: EnginePair, start: AdamState) -> None:
    run = pair.train(name, runnable(name), start)
    found = steps_of(run)
    assert list(found) == list(range(1, STEPS + 1)) and not run.progress.skipped
    for values in found.values():
        assert all(metrics.find(key) and math.isfinite(value) for key, value in values.items())
        assert values["policy/grad_norm"] > 0 and values["mismatch/logp_gap"] < 1e-5
        assert ("critic/loss" in values) == (name == "ppo")
    moved = pair.policy.state().parameters
    assert any(not torch.equal(value, start.parameters[key]) for key, value in moved.items())
    syncs = [event["data"] for event in journal_of(run, "events") if event["kind"] == "sync"]
    assert [sync["max_error"] for sync in syncs] == [0.0] * (STEPS + 1)


def changed(spec: RunSpec, section: str, **values: object) -> RunSpec:
    return spec.model_copy(update={section: getattr(spec, section).model_copy(update=values)})


def test_the_reference_is_the_start_a_folder_or_the_policy_of_a_while_ago(pair: EnginePair, start: AdamState) -> None:
    once = changed(runnable("grpo"), "optimization", minibatches=1, learning_rate=1e-3)
    kept = steps_of(pair.train("kept", once, start))
    assert kept[1]["policy/kl_ref"] == 0 and kept[2]["policy/kl_ref"] > 1e-6
    renewed = steps_of(pair.train("renewed", changed(once, "reference", refresh_every=1), start))
    assert renewed[1]["policy/kl_ref"] == renewed[2]["policy/kl_ref"] == 0
    untrained = changed(once, "reference", source="path", path=str(pair.model))
    assert steps_of(pair.train("folder", untrained, start))[1]["policy/kl_ref"] > 0.1


def test_a_reference_of_another_model_is_refused_in_a_sentence(
    pair: EnginePair, start: AdamState, tmp_path: Path
) -> None:
    other = make_tiny(tmp_path / "other", layers=2)
    for folder, sentence in ((other, "is another model than the policy: model.layers.2"), (tmp_path / "no", "exist")):
        with pytest.raises(Failure, match=sentence):
            pair.train("other", changed(runnable("grpo"), "reference", source="path", path=str(folder)), start)


def test_solved_prompts_are_never_asked_again_and_a_resumed_run_knows_them(pair: EnginePair, start: AdamState) -> None:
    retiring = Sampling(no_positive_resampling=NoPositiveResampling(threshold=0.25))
    algorithm = PRESETS["grpo"].algorithm.model_copy(update={"sampling": retiring})
    spec = changed(with_algorithm(short_spec(), algorithm), "budget", steps=10)
    run = pair.train("retiring", spec, start)
    steps = {row["prompt_id"]: [] for row in journal_of(run, "samples")}
    for row in journal_of(run, "samples"):
        steps[row["prompt_id"]].append((row["step"], row["correct"]))
    for visits in steps.values():
        for step in {step for step, _ in visits}:
            solved = [correct for at, correct in visits if at == step]
            assert sum(solved) / len(solved) < 0.25 or step == max(at for at, _ in visits)
    found = steps_of(run)
    assert found[1]["data/pool"] > found[max(found)]["data/pool"] == len(run.problems) - len(run.progress.retired)
    run.save()
    snapshot, _ = checkpoint.load_last(run.folder / "checkpoints")
    assert snapshot.progress.retired == run.progress.retired != []


def test_training_ends_when_every_prompt_is_solved(pair: EnginePair, start: AdamState) -> None:
    retiring = Sampling(no_positive_resampling=NoPositiveResampling(threshold=0.0))
    algorithm = PRESETS["grpo"].algorithm.model_copy(update={"sampling": retiring})
    run = pair.train("exhausted", changed(with_algorithm(short_spec(), algorithm), "budget", steps=50), start)
    assert run.progress.step == 6 and len(run.progress.retired) == 48
    warnings = [event["data"]["sentence"] for event in journal_of(run, "events") if event["kind"] == "warning"]
    assert any("Every prompt is solved" in sentence for sentence in warnings)


def test_interrupted_thinking_is_answered_and_both_engines_agree_on_it(pair: EnginePair, start: AdamState) -> None:
    algorithm = PRESETS["grpo"].algorithm.model_copy(update={"sampling": Sampling(interruption=Interruption())})
    run = pair.train(
        "interrupted", changed(with_algorithm(short_spec(), algorithm), "rollout", thinking_budget=1), start
    )
    found, rows = steps_of(run), journal_of(run, "samples")
    told = [row for row in rows if "time is up" in row["text"]]
    assert sum(values["length/interrupted_fraction"] for values in found.values()) == len(told) / 32 > 0.5
    assert all(values["mismatch/logp_gap"] < 1e-5 for values in found.values())
    assert all(1 < row["num_tokens"] <= 8 for row in told)
    assert run.progress.generated == sum(row["num_tokens"] for row in rows)


def test_every_preset_may_be_trained() -> None:
    assert all(not refusals(runnable(name)) for name in PRESETS)


def test_a_critic_learns_what_its_returns_are(pair: EnginePair, start: AdamState) -> None:
    spec = runnable("ppo")
    spec = changed(changed(spec, "optimization", critic_learning_rate=1e-3, epochs=2), "budget", steps=6)
    found = steps_of(pair.train("learning", spec, start))
    assert found[1]["critic/value_mean"] == 0.0 and found[6]["critic/lr"] == 1e-3
    assert found[6]["critic/loss"] < 0.7 * found[1]["critic/loss"]
    assert abs(found[6]["critic/value_mean"] - found[6]["critic/return_mean"]) < abs(found[1]["critic/return_mean"])


def test_a_resumed_critic_repeats_the_uninterrupted_one(pair: EnginePair, start: AdamState, tmp_path: Path) -> None:
    spec = changed(runnable("ppo"), "budget", steps=4)
    whole = steps_of(pair.train("whole", spec, start))
    first = pair.train("first", changed(spec, "budget", steps=2), start)
    first.save()
    snapshot, _ = checkpoint.load_last(first.folder / "checkpoints")
    pair.policy.load_state(pair.untrained)
    second = pair.begin("second", spec)
    second.policy.critic.begin(second.policy.weights())
    resume(second, snapshot)
    loop.train(second)
    assert steps_of(first) | steps_of(second) == whole

"""Every preset takes steps on real engines: one generator and one policy serve them all, weights reset by a push."""

import math
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from one_engine_pair import EnginePair, journal_of, with_algorithm
from vantage_trainer import checkpoint, loop, metrics
from vantage_trainer.arithmetic import generate
from vantage_trainer.engine_state import AdamState
from vantage_trainer.prepare import resume
from vantage_trainer.presets import PRESETS
from vantage_trainer.recipes import demo_spec
from vantage_trainer.refusals import refusals
from vantage_trainer.run import Run
from vantage_trainer.spec import RunSpec

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
    return with_algorithm(short_spec(), PRESETS[name].algorithm)


NAMES = [name for name in PRESETS if not refusals(runnable(name))]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EnginePair]:
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
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


@pytest.mark.parametrize("name", NAMES)
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


def test_no_preset_is_left_out() -> None:
    assert set(PRESETS) - set(NAMES) == {"scalerl"}


def test_a_critic_learns_what_its_returns_are(pair: EnginePair, start: AdamState) -> None:
    spec = runnable("ppo")
    spec.optimization = spec.optimization.model_copy(update={"critic_learning_rate": 1e-3, "epochs": 2})
    spec.budget = spec.budget.model_copy(update={"steps": 6})
    found = steps_of(pair.train("learning", spec, start))
    assert found[1]["critic/value_mean"] == 0.0 and found[6]["critic/lr"] == 1e-3
    assert found[6]["critic/loss"] < 0.7 * found[1]["critic/loss"]
    assert abs(found[6]["critic/value_mean"] - found[6]["critic/return_mean"]) < abs(found[1]["critic/return_mean"])


def test_a_resumed_critic_repeats_the_uninterrupted_one(pair: EnginePair, start: AdamState, tmp_path: Path) -> None:
    spec = runnable("ppo")
    spec.budget = spec.budget.model_copy(update={"steps": 4})
    whole = steps_of(pair.train("whole", spec, start))
    half = spec.model_copy(update={"budget": spec.budget.model_copy(update={"steps": 2})})
    first = pair.train("first", half, start)
    first.save()
    snapshot, _ = checkpoint.load_last(first.folder / "checkpoints")
    pair.policy.load_state(pair.untrained)
    second = pair.begin("second", spec)
    second.policy.critic.begin(second.policy.weights())
    resume(second, snapshot)
    loop.train(second)
    assert steps_of(first) | steps_of(second) == whole

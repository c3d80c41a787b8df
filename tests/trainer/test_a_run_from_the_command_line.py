"""The tiny run on real engines: vLLM in its own process, DeepSpeed in the trainer's."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from vantage_trainer import checkpoint, demo, metrics
from vantage_trainer.arithmetic import generate
from vantage_trainer.failure import Failure
from vantage_trainer.jobspec import DryRunSpec, JobFile
from vantage_trainer.recipes import demo_spec
from vantage_trainer.spec import RunSpec
from vantage_trainer.train import read_spec

STEPS = 4
TIMES = ("time/", "node/", "tokens/per_second", "compute/device_hours")


def small_spec() -> RunSpec:
    spec = demo_spec(seed=3)
    assert spec.warm_start is not None
    spec.warm_start.steps = 8
    spec.rollout.prompts_per_step, spec.rollout.group_size = 4, 4
    spec.evaluation.every_steps, spec.evaluation.sets = 2, spec.evaluation.sets[:1]
    spec.evaluation.before_warm_start = True
    spec.checkpoint.every_steps, spec.checkpoint.keep_last = 2, 10
    spec.budget.steps = STEPS
    return spec


def write(folder: Path, spec: RunSpec) -> Path:
    """Make a run folder; an epoch ends amid the run."""
    (folder / "data").mkdir(parents=True)
    (folder / "spec.json").write_text(spec.model_dump_json())
    demo.write_rows(folder / "data" / "train.jsonl", generate(10, 1))
    demo.write_rows(folder / "data" / "heldout.jsonl", generate(16, 2, heldout=True))
    return folder


def start(folder: Path, attempt: int = 1) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "vantage_trainer.train", str(folder), "--attempt", str(attempt)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)


def finish(folder: Path, attempt: int = 1, process: subprocess.Popen[str] | None = None) -> dict[str, Any]:
    process = process or start(folder, attempt)
    try:
        output, _ = process.communicate(timeout=300)
    finally:
        process.kill()
    place = folder / "attempts" / str(attempt)
    end = json.loads((place / "exit.json").read_text())
    log = (place / "trainer.log").read_text()[-3000:]
    assert process.returncode == (1 if end["outcome"] == "failed" else 0), log
    assert "Traceback" not in output
    return end | {"log": log}


def journal(folder: Path, name: str, attempt: int = 1) -> list[dict[str, Any]]:
    path = folder / "attempts" / str(attempt) / "journal" / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def steady(folder: Path, attempt: int = 1) -> dict[int, dict[str, Any]]:
    """Return each step's metrics but those that a clock decides."""
    found: dict[int, dict[str, Any]] = {}
    for row in journal(folder, "metrics", attempt):
        if "warm_start/loss" not in row["values"]:
            kept = {key: value for key, value in row["values"].items() if not key.startswith(TIMES)}
            found.setdefault(row["step"], {}).update(kept)
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody interrupted."""
    folder = write(tmp_path_factory.mktemp("whole") / "run", small_spec())
    end = finish(folder)
    assert end["outcome"] == "succeeded", end
    return folder


@pytest.mark.engine
def test_weights_are_proven_after_every_update_and_both_sides_agree(whole: Path) -> None:
    events = journal(whole, "events")
    syncs = [event["data"] for event in events if event["kind"] == "sync"]
    assert [sync["version"] for sync in syncs] == list(range(1, STEPS + 2))
    assert all(sync["max_error"] == 0.0 and sync["rows"] > 1000 for sync in syncs)
    [agreement] = [event["data"] for event in events if event["kind"] == "agreement"]
    assert agreement["mean"] < 1e-5 and agreement["tokens"] > 50
    versions = {sample["step"]: sample["version"] for sample in journal(whole, "samples")}
    assert versions == {step: step for step in range(1, STEPS + 1)}


@pytest.mark.engine
def test_every_metric_is_in_the_dictionary_and_the_shares_add_up(whole: Path) -> None:
    rows = [row["values"] for row in journal(whole, "metrics")]
    assert all(metrics.find(key) for row in rows for key in row)
    steps = [row for row in rows if "reward/mean" in row]
    assert len(steps) == STEPS
    for row in steps:
        assert sum(value for key, value in row.items() if key.startswith("signal/")) == pytest.approx(1.0)
        assert row["mismatch/logp_gap"] < 1e-5
    assert [row["tokens/generated"] for row in steps] == sorted(row["tokens/generated"] for row in steps)


@pytest.mark.engine
def test_stages_evaluations_samples_and_checkpoints_are_told(whole: Path) -> None:
    events = journal(whole, "events")
    assert [event["data"]["name"] for event in events if event["kind"] == "stage"] == ["warm_start", "rl"]
    evaluations = [event for event in events if event["kind"] == "evaluation"]
    assert [event["step"] for event in evaluations] == [0, 0, 2, 4]
    assert [event["data"]["stage"] for event in evaluations] == ["warm_start", "rl", "rl", "rl"]
    first = journal(whole, "metrics")[0]
    assert first["step"] == 0 and "warm_start/heldout/pass@1" in first["values"]
    assert all(event["data"]["n"] == [1] * 16 for event in evaluations)
    checkpoints = {event["data"]["folder"] for event in events if event["kind"] == "checkpoint"}
    checkpoints = {folder for folder in checkpoints if "step-" in folder}  # on a busy machine the warm start has some
    assert checkpoints == {f"checkpoints/step-00000{step}" for step in (0, 2, 4)}
    assert all((whole / folder / "manifest.json").exists() for folder in checkpoints)
    assert len(journal(whole, "samples")) == STEPS * 16
    assert len([row for row in journal(whole, "metrics") if "warm_start/loss" in row["values"]]) == 8


@pytest.mark.engine
def test_a_stopped_and_resumed_run_repeats_the_uninterrupted_one(whole: Path, tmp_path: Path) -> None:
    folder = write(tmp_path / "run", small_spec())
    process = start(folder)
    while not any(step >= 1 for step in steady(folder)):
        assert process.poll() is None, "the run ended before it could be stopped"
        time.sleep(0.02)
    (folder / "attempts" / "1" / "stop").write_text("stop")
    asked = time.monotonic()
    end = finish(folder, process=process)
    assert time.monotonic() - asked < 30
    assert end["outcome"] == "stopped" and end["code"] == "stopped" and end["step"] < STEPS, end
    assert (folder / "checkpoints" / f"step-{end['step']:06d}").is_dir()
    assert finish(folder, attempt=2)["outcome"] == "succeeded"
    [resumed] = [event["data"] for event in journal(folder, "events", 2) if event["kind"] == "resumed"]
    assert resumed["from_step"] == end["step"] and resumed["checkpoint"] == f"checkpoints/step-{end['step']:06d}"
    first, second = steady(folder), steady(folder, attempt=2)
    assert {step: first.get(step, {}) | second.get(step, {}) for step in first | second} == steady(whole)
    assert not any("reward/mean" in first.get(step, {}) for step in second if "reward/mean" in second[step])


@pytest.mark.engine
def test_a_run_stopped_amid_its_warm_start_goes_on_from_there(tmp_path: Path) -> None:
    spec, steps = small_spec(), 150
    assert spec.warm_start is not None
    spec.warm_start.steps, spec.budget.steps, spec.evaluation.sets = steps, 1, []
    folder = write(tmp_path / "run", spec)
    process = start(folder)
    while not journal(folder, "metrics"):
        assert process.poll() is None, "the run ended before it could be stopped"
        time.sleep(0.02)
    (folder / "attempts" / "1" / "stop").write_text("stop")
    end = finish(folder, process=process)
    done = [row["step"] for row in journal(folder, "metrics")]
    assert end["outcome"] == "stopped" and f"after warm-start step {done[-1]} " in end["sentence"], end
    assert done[-1] < steps and (folder / "checkpoints" / f"start-{done[-1]:06d}").is_dir()
    assert finish(folder, attempt=2)["outcome"] == "succeeded"
    [resumed] = [event["data"] for event in journal(folder, "events", 2) if event["kind"] == "resumed"]
    assert (resumed["stage"], resumed["from_step"]) == ("warm_start", done[-1])
    rows = journal(folder, "metrics", 2)
    assert done + [row["step"] for row in rows if "warm_start/loss" in row["values"]] == list(range(1, steps + 1))


@pytest.mark.engine
@pytest.mark.parametrize("keep", [True, False])
def test_a_fork_begins_with_the_weights_of_its_parent_and_the_optimizer_state_that_was_chosen(
    keep: bool, whole: Path, tmp_path: Path
) -> None:
    spec = small_spec()
    spec.warm_start, spec.budget.steps, spec.checkpoint.every_steps = None, 1, 1
    spec.optimization.minibatches = spec.optimization.epochs = 1
    spec.optimization.learning_rate = 1e-30  # what the checkpoint then holds is what was loaded
    folder = write(tmp_path / "run", spec)
    source = whole / "checkpoints" / "step-000002"
    shutil.copytree(source, folder / "parent" / source.name)
    told = {"checkpoint": source.name, "keep_optimizer": keep}
    (folder / "parent" / "fork.json").write_text(json.dumps(told))
    end = finish(folder)
    assert end["outcome"] == "succeeded" and end["step"] == 1, end
    events = journal(folder, "events")
    assert [event["data"] for event in events if event["kind"] == "forked"] == [told]
    assert [event["data"]["name"] for event in events if event["kind"] == "stage"] == ["rl"]
    parent, child = checkpoint.load(source), checkpoint.load(folder / "checkpoints" / "step-000001")
    assert child.adam.steps == (parent.adam.steps if keep else 0) + 1
    assert child.progress.step == 1
    for name, value in parent.adam.parameters.items():
        assert torch.equal(child.adam.parameters[name], value)


@pytest.mark.engine
def test_two_ranks_with_zero_2_resume_what_one_rank_began(whole: Path, tmp_path: Path) -> None:
    spec = small_spec()
    spec.resources.training_devices, spec.optimization.zero_stage = 2, 2
    folder = write(tmp_path / "run", spec)
    shutil.copytree(whole / "checkpoints" / "step-000002", folder / "checkpoints" / "step-000002")
    end = finish(folder, attempt=2)
    assert end["outcome"] == "succeeded", end
    ours, theirs = steady(folder, attempt=2), steady(whole)
    assert {step for step, values in ours.items() if "reward/mean" in values} == {3, 4}
    assert ours[3]["reward/mean"] == theirs[3]["reward/mean"]
    assert ours[3]["policy/loss"] == pytest.approx(theirs[3]["policy/loss"], abs=1e-5)
    assert ours[3]["policy/grad_norm"] == pytest.approx(theirs[3]["policy/grad_norm"], rel=1e-4)
    assert [ours[step]["policy/lr"] for step in (3, 4)] == [theirs[step]["policy/lr"] for step in (3, 4)]
    assert asked(folder, 2) == [one for one in asked(whole) if one[0] > 2]
    written, expected = (checkpoint.load(place / "checkpoints" / "step-000004") for place in (folder, whole))
    assert len(written.random) == 2 and written.adam.steps == expected.adam.steps
    assert written.progress.cursor == expected.progress.cursor
    for name, value in expected.adam.parameters.items():  # Adam moves each by its rate at most: four times 5e-5
        torch.testing.assert_close(written.adam.parameters[name], value, rtol=0, atol=1e-3)


def asked(folder: Path, attempt: int = 1) -> list[tuple[int, str]]:
    """Return the step and the prompt of every sample, in order."""
    return [(sample["step"], sample["prompt_id"]) for sample in journal(folder, "samples", attempt)]


BAD = {
    "no answer": ("heldout.jsonl", '{"id": "r7", "prompt": "1+1="}\n', "Row r7 of the dataset heldout has no answer"),
    "a long prompt": ("train.jsonl", json.dumps({"id": "r9", "prompt": "1" * 99, "answer": "1"}) + "\n", "(r9)"),
    "a learning rate of NaN": ("../spec.json", '{"optimization": {"learning_rate": "NaN"}}', "."),
    "a group of one": ("../spec.json", None, "group"),
}


@pytest.mark.engine
@pytest.mark.parametrize("case", BAD)
def test_bad_input_ends_in_a_sentence(tmp_path: Path, case: str) -> None:
    name, content, sentence = BAD[case]
    spec = small_spec()
    spec.rollout.group_size = 1 if content is None else 4
    folder = write(tmp_path / "run", spec)
    if content is not None:
        (folder / "data" / name).write_text(content)
    end = finish(folder)
    assert end["outcome"] == "failed" and sentence in end["sentence"], end
    assert end["code"] not in ("internal", "") and "Traceback" not in end["sentence"]


@pytest.mark.parametrize("kind", ["missing", "file"])
def test_what_is_no_run_folder_is_told_in_a_sentence_and_left_alone(kind: str, tmp_path: Path) -> None:
    if kind == "file":
        (tmp_path / "run").write_text("")
    process = start(tmp_path / "run")
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 2 and "run cannot be used as a run folder" in output
    assert "Traceback" not in output and not (tmp_path / "run").is_dir()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"{", "spec.json is not JSON: "),
        (b"[" * 100_000, "spec.json is not JSON: "),
        (b'{"model":\n{"name": "\xe9"}}', "Line 2 of spec.json is not UTF-8"),
    ],
)
def test_a_broken_spec_is_named(content: bytes, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_bytes(content)
    with pytest.raises(Failure, match=sentence):
        read_spec(tmp_path)


def test_a_second_trainer_of_the_same_run_ends_at_once(tmp_path: Path) -> None:
    import fcntl

    folder = write(tmp_path / "run", small_spec())
    with (folder / "trainer.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = start(folder)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 3 and "Another trainer" in output
    assert not (folder / "attempts").exists()


@pytest.mark.engine
def test_a_dry_run_after_the_warm_start_gives_exactly_what_the_first_step_gave(whole: Path, tmp_path: Path) -> None:
    spec = DryRunSpec(run=small_spec(), prompts=3)
    (tmp_path / "job.json").write_text(JobFile(spec=spec).model_dump_json())
    shutil.copytree(whole / "data", tmp_path / "data")
    command = [sys.executable, "-m", "vantage_trainer.job", str(tmp_path), "--attempt", "1"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    end = finish(tmp_path, process=process)
    assert end["outcome"] == "succeeded" and "of 12 completions were right" in end["sentence"], end
    tried = [essence(sample) for sample in journal(tmp_path, "samples")]
    first = [essence(sample) for sample in journal(whole, "samples") if sample["step"] == 1 and sample["group"] < 3]
    assert len(tried) == 12 and tried == first
    [told] = [event["data"] for event in journal(tmp_path, "events") if event["kind"] == "result"]
    assert told["weights"] == "warm_start" and sum(told["signal"].values()) == pytest.approx(1.0)


def essence(sample: dict[str, Any]) -> tuple[object, ...]:
    """What a completion is and what it earns, but for its advantage: that depends on the whole batch's groups."""
    return tuple(sample[key] for key in ("prompt_id", "group", "index", "text", "reward", "parts", "correct", "finish"))

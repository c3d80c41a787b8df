"""Qwen's attention biases and its norms of queries and keys are trained, sent and proven like everything else."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM
from vantage_trainer import checkpoint, demo
from vantage_trainer.arithmetic import generate
from vantage_trainer.recipes import demo_spec
from vantage_trainer.spec import Evaluation, Model, RunSpec
from vantage_trainer.tiny import CONTEXT, make_tiny

pytestmark = pytest.mark.engine
STEPS = 2
SIZES = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "max_position_embeddings": CONTEXT,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
OWN = {"qwen2": "self_attn.k_proj.bias", "qwen3": "self_attn.q_norm.weight"}


def write_model(folder: Path, kind: str) -> Path:
    """Write a random model whose biases and norms matter, with the tiny model's tokenizer; Qwen2's head is its own."""
    tiny = make_tiny(folder.with_name("tiny"))
    vocabulary = json.loads((tiny / "config.json").read_text())["vocab_size"]
    torch.manual_seed(1)
    config = AutoConfig.for_model(kind, vocab_size=vocabulary, tie_word_embeddings=kind == "qwen3", **SIZES)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias") or "norm" in name:
                parameter.add_(torch.randn_like(parameter) * 0.3)
    model.save_pretrained(folder)
    for path in tiny.glob("tokenizer*"):
        shutil.copy(path, folder)
    return folder


def small_spec(model: Path) -> RunSpec:
    spec = demo_spec(seed=5)
    assert spec.warm_start is not None
    spec.model, spec.warm_start.steps, spec.warm_start.batch = Model(source="folder", name=str(model)), 2, 8
    spec.rollout.prompts_per_step, spec.rollout.group_size, spec.optimization.minibatches = 4, 4, 2
    spec.optimization.learning_rate, spec.evaluation, spec.budget.steps = 1e-3, Evaluation(), STEPS
    return spec


def train(folder: Path, spec: RunSpec) -> None:
    (folder / "data").mkdir(parents=True)
    (folder / "spec.json").write_text(spec.model_dump_json())
    demo.write_rows(folder / "data" / "train.jsonl", generate(16, 1))
    command = [sys.executable, "-m", "vantage_trainer.train", str(folder)]
    subprocess.run(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, stdout=subprocess.DEVNULL, timeout=300)


def told(folder: Path, name: str) -> list[dict[str, Any]]:
    path = folder / "attempts" / "1" / "journal" / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("kind", ["qwen2", "qwen3"])
def test_a_qwen_is_trained_and_proven_with_all_its_parameters(tmp_path: Path, kind: str) -> None:
    model, folder = write_model(tmp_path / kind, kind), tmp_path / "run"
    before = AutoModelForCausalLM.from_pretrained(model).state_dict()
    train(folder, small_spec(model))
    end = json.loads((folder / "attempts" / "1" / "exit.json").read_text())
    assert end["outcome"] == "succeeded", end
    events = told(folder, "events")
    syncs = [event["data"] for event in events if event["kind"] == "sync"]
    assert [sync["version"] for sync in syncs] == [1, 2, 3]
    assert all(sync["max_error"] == 0.0 and sync["rows"] > 500 for sync in syncs)
    [agreement] = [event["data"] for event in events if event["kind"] == "agreement"]
    assert agreement["mean"] < 1e-5
    gaps = [row["values"]["mismatch/logp_gap"] for row in told(folder, "metrics") if "reward/mean" in row["values"]]
    assert len(gaps) == STEPS and max(gaps) < 1e-5
    snapshot, _ = checkpoint.load_last(folder / "checkpoints")
    assert snapshot is not None
    after = snapshot.adam.parameters
    own = [name for name in after if name.endswith(OWN[kind])]
    assert len(own) == SIZES["num_hidden_layers"]
    assert all(not torch.equal(after[name], before[name]) for name in own)

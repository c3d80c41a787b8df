"""Evaluation and export of a trained checkpoint, on real engines, against the run that wrote it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from vantage_trainer import demo
from vantage_trainer.arithmetic import generate
from vantage_trainer.checkpoint import load_parameters
from vantage_trainer.jobs.export import give
from vantage_trainer.jobspec import EvaluateSpec, ExportSpec, JobFile, JobSpec, MeasuredSet
from vantage_trainer.recipes import demo_spec
from vantage_trainer.spec import EvaluationSet, Model, RunSpec

pytestmark = pytest.mark.engine
LAST = "step-000001"


def spec_of_run() -> RunSpec:
    spec = demo_spec(seed=5)
    assert spec.warm_start is not None
    spec.warm_start.steps = 100
    spec.rollout.prompts_per_step, spec.rollout.group_size = 4, 4
    spec.evaluation.every_steps = 1
    spec.evaluation.sets = [EvaluationSet(name="heldout", dataset="heldout@1", n=4, k=[1, 2, 4], limit=12)]
    spec.evaluation.before_first = False
    spec.budget.steps = 1
    return spec


def spec_of_job(run: RunSpec, **changes: Any) -> EvaluateSpec:
    sets = [MeasuredSet(name="heldout", dataset="heldout@1", n=4, limit=12)]
    shared = {name: getattr(run, name) for name in ("model", "data", "reward", "rollout", "seed")}
    return EvaluateSpec(**shared | {"sets": sets} | changes)


def live(module: str, folder: Path) -> Path:
    demo.write_rows(folder / "data" / "heldout.jsonl", generate(16, 2, heldout=True))
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", module, str(folder), "--attempt", "1"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    log = (folder / "attempts" / "1" / "trainer.log").read_text()[-2000:]
    end = json.loads((folder / "attempts" / "1" / "exit.json").read_text())
    assert end["outcome"] == "succeeded", log + done.stdout
    return folder


def job(run: Path, name: str, spec: JobSpec) -> Path:
    folder = run.parent / name
    (folder / "data").mkdir(parents=True)
    told = JobFile(spec=spec, parent=str(run))
    if getattr(spec, "checkpoint", ""):
        shutil.copytree(run / "checkpoints" / LAST, folder / "parent" / LAST)
        told.checkpoint = str(folder / "parent" / LAST)
    (folder / "job.json").write_text(told.model_dump_json())
    return live("vantage_trainer.job", folder)


def lines(folder: Path, name: str, kind: str = "") -> list[dict[str, Any]]:
    text = (folder / "attempts" / "1" / "journal" / f"{name}.jsonl").read_text()
    return [line for line in map(json.loads, text.splitlines()) if not kind or line["kind"] == kind]


def results(folder: Path, what: str) -> list[dict[str, Any]]:
    return [line["data"] for line in lines(folder, "events", "result") if line["data"]["what"] == what]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("jobs") / "run"
    (folder / "data").mkdir(parents=True)
    (folder / "spec.json").write_text(spec_of_run().model_dump_json())
    demo.write_rows(folder / "data" / "train.jsonl", generate(64, 1))
    return live("vantage_trainer.train", folder)


@pytest.fixture(scope="module")
def evaluated(run: Path) -> Path:
    return job(run, "evaluated", spec_of_job(spec_of_run(), checkpoint=LAST))


@pytest.fixture(scope="module")
def exported(run: Path) -> Path:
    return job(run, "exported", ExportSpec(checkpoint=LAST, model=spec_of_run().model)) / "output"


def test_an_evaluation_of_the_last_checkpoint_gives_the_numbers_of_the_run(run: Path, evaluated: Path) -> None:
    [theirs] = [line["data"] for line in lines(run, "events", "evaluation") if line["step"] == 1]
    [problems], [summary] = results(evaluated, "problems"), results(evaluated, "summary")
    assert {name: problems[name] for name in ("ids", "n", "c")} == {name: theirs[name] for name in ("ids", "n", "c")}
    assert summary["pass_at"] == theirs["pass_at"] and list(summary["pass_at"]) == ["1", "2", "4"]
    assert summary["intervals"] == theirs["bounds"]
    metrics = [line["values"] for line in lines(run, "metrics") if "eval/heldout/length" in line["values"]]
    assert summary["length"] == metrics[-1]["eval/heldout/length"]


def test_an_evaluation_keeps_its_answers_and_only_while_it_works_its_checkpoint(evaluated: Path) -> None:
    samples = lines(evaluated, "samples")
    assert len(samples) == 48 and {sample["group"] for sample in samples} == set(range(12))
    assert not (evaluated / "parent" / LAST).exists()


def test_the_exported_folder_has_the_logits_of_the_checkpoint(run: Path, exported: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(exported)
    trained = AutoModelForCausalLM.from_pretrained(run / "models" / "tiny")
    ids = torch.tensor([AutoTokenizer.from_pretrained(exported)("3+4+5+1=")["input_ids"]])
    with torch.no_grad():
        before = trained(ids).logits
        give(trained, load_parameters(run / "checkpoints" / LAST))
        assert torch.equal(model(ids).logits, trained(ids).logits)
        assert not torch.equal(before, trained(ids).logits)
    assert model.dtype == torch.float32 and model.lm_head.weight is model.model.embed_tokens.weight
    [told] = results(exported.parent, "folder")
    assert told["tied"] and told["folder"] == str(exported)
    assert {"model.safetensors", "config.json", "tokenizer.json"} <= {file["name"] for file in told["files"]}


def test_vllm_loads_the_exported_folder_and_answers_as_the_checkpoint_does(
    run: Path, evaluated: Path, exported: Path
) -> None:
    model = Model(source="folder", name=str(exported))
    again = job(run, "again", spec_of_job(spec_of_run(), model=model))
    texts = [[sample["text"] for sample in lines(folder, "samples")] for folder in (evaluated, again)]
    assert texts[0] == texts[1] and len(set(texts[0])) > 12

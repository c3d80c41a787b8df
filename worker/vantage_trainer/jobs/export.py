"""Write a checkpoint as a plain Hugging Face folder: safetensors, config, tokenizer, chat template; then prove it."""

from pathlib import Path
from typing import Any

import torch
from pydantic import JsonValue
from torch import Tensor

from vantage_trainer import checkpoint
from vantage_trainer.failure import Failure
from vantage_trainer.generation import is_tied
from vantage_trainer.job import Job
from vantage_trainer.jobspec import ExportSpec
from vantage_trainer.prepare import model_folder, tokenizer_of
from vantage_trainer.spec import RunSpec


def run(job: Job) -> str:
    """Export; returns the sentence that tells where the folder lies."""
    assert isinstance(job.spec, ExportSpec)
    source = model_folder(job.models, RunSpec(model=job.spec.model))
    model = _model(source, job.spec.dtype, job.checkpoint)
    job.stop.check()
    job.phase("writing")
    output = job.fresh_output()
    model.save_pretrained(output)
    _write_tokenizer(source, output, job.spec.model.chat_template)
    job.stop.check()
    job.phase("verifying")
    num = prove(output, dict(model.named_parameters()))
    files: list[JsonValue] = [{"name": path.name, "bytes": path.stat().st_size} for path in sorted(output.iterdir())]
    told: dict[str, JsonValue] = {"what": "folder", "folder": str(output), "files": files, "dtype": job.spec.dtype}
    told |= {"tensors": num, "parameters": sum(one.numel() for one in model.parameters()), "tied": is_tied(output)}
    job.result(told | {"system_prompt": job.spec.model.system_prompt})
    return f"Exported {job.spec.checkpoint or job.spec.model.name} to {output}."


def _model(source: Path, dtype: str, weights: Path | None) -> Any:
    """Load the model's own code and settings, and give it the checkpoint's weights."""
    from transformers import AutoModelForCausalLM

    model: Any = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32)
    if weights is not None:
        give(model, checkpoint.load_parameters(weights))
    return model.to(getattr(torch, dtype))


@torch.no_grad()
def give(model: Any, weights: dict[str, Tensor]) -> None:
    """Copy every tensor by its name; Failure when the checkpoint is of another model."""
    named = dict(model.named_parameters())
    for name in sorted(named.keys() | weights.keys()):
        if name not in named or name not in weights or named[name].shape != weights[name].shape:
            raise Failure("other_model", f"The checkpoint is of another model: {name} differs in name or shape.")
        named[name].copy_(weights[name])


def _write_tokenizer(source: Path, output: Path, chat_template: str | None) -> None:
    tokenizer: Any = tokenizer_of(source)
    if chat_template:
        tokenizer.chat_template = chat_template
    tokenizer.save_pretrained(output)


def prove(output: Path, expected: dict[str, Tensor]) -> int:
    """Read the written tensors back one by one; returns how many, or Failure when one is not as it should be."""
    from safetensors import safe_open

    missing = set(expected)
    for path in sorted(output.glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 - it is no mapping
                if not torch.equal(file.get_tensor(name), expected[name].detach()):
                    raise Failure("not_exported", f"The exported {name} is not the checkpoint's: export it again.")
                missing.discard(name)
    if missing:
        raise Failure("not_exported", f"The export left out {sorted(missing)[0]}: export it again.")
    return len(expected)

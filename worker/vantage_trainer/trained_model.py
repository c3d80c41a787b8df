"""Load a Hugging Face model for training."""

from pathlib import Path
from typing import Any

import torch

from vantage_trainer.spec import RunSpec


def load(folder: Path, spec: RunSpec) -> Any:
    """Read the causal language model of a folder in the run's precision."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, spec.model.dtype))
    model.config.use_cache = False
    if spec.optimization.activation_checkpointing:
        model.gradient_checkpointing_enable()
    return model

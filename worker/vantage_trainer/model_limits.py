"""Read from a Hugging Face folder what the engine is to be given: context, end tokens, memory for its cache."""

import json
import os
from pathlib import Path
from typing import Any

DTYPE_BYTES = {"float32": 4, "bfloat16": 2}
MIN_CACHE_BYTES = 1 << 26
MAX_CACHE_BYTES = 1 << 32
# Few sequences reach their full length at once; those that find no room wait.
CACHE_SHARE = 4
# Below this size a step is mostly bookkeeping in Python, and a second thread only waits.
SMALL_MODEL_BYTES = 1 << 25


def read_json(path: Path) -> dict[str, Any]:
    """Return a file's JSON object, an empty one when there is no such file."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def text_config(folder: Path) -> dict[str, Any]:
    config = read_json(folder / "config.json")
    return {**config, **config.get("text_config", {})}


def context_length(folder: Path, wanted: int) -> int:
    """Return the tokens a prompt and its answer may have together: what the run wants, within what the model reads."""
    return min(wanted, text_config(folder).get("max_position_embeddings", wanted))


def end_tokens(folder: Path) -> list[int]:
    """Return every token that ends a completion: the tokenizer's own and those the model's configuration names."""
    ends: set[int] = set()
    for config in (read_json(folder / "generation_config.json"), text_config(folder)):
        named = config.get("eos_token_id")
        ends |= {named} if isinstance(named, int) else set(named or [])
    return sorted(ends | _tokenizer_end(folder))


def _tokenizer_end(folder: Path) -> set[int]:
    token = read_json(folder / "tokenizer_config.json").get("eos_token")
    text = token["content"] if isinstance(token, dict) else token
    added = read_json(folder / "tokenizer.json").get("added_tokens", [])
    return {entry["id"] for entry in added if entry["content"] == text}


def cache_bytes(folder: Path, dtype: str, num_sequences: int, length: int) -> int:
    """Return room for the keys and values of that many sequences, within bounds and never less than one needs."""
    config = text_config(folder)
    heads = config["num_attention_heads"]
    head_size = config.get("head_dim") or config["hidden_size"] // heads
    per_token = 2 * config["num_hidden_layers"] * (config.get("num_key_value_heads") or heads) * head_size
    per_sequence = per_token * DTYPE_BYTES[dtype] * length
    wanted = per_sequence * num_sequences // CACHE_SHARE
    return max(min(max(wanted, MIN_CACHE_BYTES), MAX_CACHE_BYTES), 2 * per_sequence)


def threads_for(folder: Path) -> int:
    """Return how many threads the engine computes with: one for a small model, else a thread per core."""
    size = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    return 1 if size < SMALL_MODEL_BYTES else len(os.sched_getaffinity(0))

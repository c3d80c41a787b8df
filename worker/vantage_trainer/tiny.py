"""Make the tiny model: a Llama of 0.6 M parameters with one token per character, the same bits on every machine."""

import json
import string
from pathlib import Path
from typing import TYPE_CHECKING

from vantage_trainer.whole_folder import make_whole

if TYPE_CHECKING:
    import numpy as np

ALPHABET = "\n\t" + string.digits + string.ascii_letters + string.punctuation + " "
SPECIALS = {"pad_token": "<pad>", "bos_token": "<bos>", "eos_token": "<eos>", "unk_token": "<unk>"}
CONTEXT = 1024
HIDDEN = 128
HEADS = 4
LAYERS = 3
INTERMEDIATE = 352
INITIAL_STD = 0.02
WEIGHT_SEED = 20250607


def make_tiny(folder: Path, *, tied: bool = True, alphabet: str = ALPHABET, layers: int = LAYERS) -> Path:
    """Write the tiny model as a Hugging Face folder, whole or not at all; an existing one is left as it is."""
    config = _config(len(SPECIALS) + len(alphabet), layers, tied)
    return make_whole(Path(folder), lambda draft: _write(draft, config=config, alphabet=alphabet))


def _config(vocabulary: int, layers: int, tied: bool) -> dict[str, object]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": vocabulary,
        "hidden_size": HIDDEN,
        "intermediate_size": INTERMEDIATE,
        "num_hidden_layers": layers,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "head_dim": HIDDEN // HEADS,
        "hidden_act": "silu",
        "max_position_embeddings": CONTEXT,
        "initializer_range": INITIAL_STD,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": tied,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "dtype": "float32",
    }


def _write(folder: Path, *, config: dict[str, object], alphabet: str) -> None:
    from safetensors.numpy import save_file

    _write_tokenizer(folder, alphabet)
    save_file(_weights(config), folder / "model.safetensors", metadata={"format": "pt"})
    ends = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    _write_json(folder / "generation_config.json", {**ends, "do_sample": True})
    _write_json(folder / "config.json", config)


def _write_json(path: Path, content: dict[str, object]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _write_tokenizer(folder: Path, alphabet: str) -> None:
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors

    vocabulary = {token: id for id, token in enumerate([*SPECIALS.values(), *alphabet])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=SPECIALS["unk_token"]))
    tokenizer.add_special_tokens(list(SPECIALS.values()))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.post_processor = processors.TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 1)])
    tokenizer.save(str(folder / "tokenizer.json"))
    _write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": CONTEXT,
            "clean_up_tokenization_spaces": False,
            **SPECIALS,
        },
    )


def _weights(config: dict[str, object]) -> "dict[str, np.ndarray]":
    """Draw uniform weights from raw PCG64 integers: exact arithmetic, so the same bits with any processor."""
    import numpy as np

    source = np.random.PCG64(WEIGHT_SEED)
    width = np.float32(2 * INITIAL_STD * 3**0.5)

    def draw(shape: tuple[int, ...]) -> "np.ndarray":
        if len(shape) == 1:
            return np.ones(shape, np.float32)
        raw = (source.random_raw(int(np.prod(shape))) >> np.uint64(40)).astype(np.float32)
        return ((raw * np.float32(2.0**-24) - np.float32(0.5)) * width).reshape(shape)

    return {name: draw(shape) for name, shape in _shapes(config).items()}


def _shapes(config: dict[str, object]) -> dict[str, tuple[int, ...]]:
    table = (int(str(config["vocab_size"])), HIDDEN)
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": table}
    for layer in range(int(str(config["num_hidden_layers"]))):
        at = f"model.layers.{layer}"
        shapes |= {f"{at}.self_attn.{part}_proj.weight": (HIDDEN, HIDDEN) for part in "qkvo"}
        shapes |= {f"{at}.mlp.{part}_proj.weight": (INTERMEDIATE, HIDDEN) for part in ("gate", "up")}
        shapes[f"{at}.mlp.down_proj.weight"] = (HIDDEN, INTERMEDIATE)
        shapes |= {f"{at}.{part}_layernorm.weight": (HIDDEN,) for part in ("input", "post_attention")}
    shapes["model.norm.weight"] = (HIDDEN,)
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = table
    return shapes

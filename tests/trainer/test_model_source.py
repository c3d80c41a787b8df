"""A model is found, or a sentence says what to change."""

import time
from pathlib import Path

import pytest
from vantage_trainer.model_source import resolve
from vantage_trainer.spec import Model


def test_the_tiny_model_is_made_on_demand(tmp_path: Path) -> None:
    tied = resolve(Model(source="tiny", name="tiny"), tmp_path)
    untied = resolve(Model(source="tiny", name="tiny-untied"), tmp_path)
    assert tied != untied
    assert '"tie_word_embeddings": false' in (untied / "config.json").read_text()


@pytest.mark.parametrize(
    ("missing", "sentence"),
    [("config.json", "no config.json"), ("model.safetensors", "no weights"), ("tokenizer.json", "no tokenizer")],
)
def test_a_folder_with_something_missing_is_refused(tmp_path: Path, missing: str, sentence: str) -> None:
    folder = resolve(Model(), tmp_path)
    (folder / "tokenizer_config.json").unlink()
    (folder / missing).unlink()
    with pytest.raises(ValueError, match=sentence):
        resolve(Model(source="folder", name=str(folder)), tmp_path)


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="does not exist on this node"):
        resolve(Model(source="folder", name=str(tmp_path / "nowhere")), tmp_path)


def test_an_unknown_built_in_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="choose tiny or tiny-untied"):
        resolve(Model(source="tiny", name="huge"), tmp_path)


def test_the_hub_without_a_network_is_refused_quickly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    began = time.monotonic()
    with pytest.raises(ValueError, match="no network to the model hub"):
        resolve(Model(source="hub", name="example/model"), tmp_path)
    assert time.monotonic() - began < 20

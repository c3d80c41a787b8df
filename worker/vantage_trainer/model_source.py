"""Find the Hugging Face folder a run's model lives in, or say in a sentence why there is none."""

from pathlib import Path

from vantage_trainer.model_package import from_package
from vantage_trainer.spec import Model
from vantage_trainer.tiny import make_tiny

WEIGHT_PATTERNS = ("*.safetensors", "pytorch_model*.bin")
TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json")
HUB_FILES = ["*.json", "*.safetensors", "*.model", "*.txt", "*.jinja"]
HUB_PATIENCE_SECONDS = 10.0


def resolve(model: Model, cache: Path) -> Path:
    """Return the model's folder, making or fetching it below `cache`; ValueError says what to change."""
    sources = {"tiny": _tiny, "folder": _folder, "hub": _hub, "package": _package}
    return sources[model.source](model, cache)


def _tiny(model: Model, cache: Path) -> Path:
    if model.name not in ("tiny", "tiny-untied"):
        raise ValueError(f"There is no built-in model called {model.name!r}: choose tiny or tiny-untied.")
    return make_tiny(cache / model.name, tied=model.name == "tiny")


def _folder(model: Model, cache: Path) -> Path:
    folder = Path(model.name).expanduser()
    if not folder.is_dir():
        raise ValueError(f"The model folder {folder} does not exist on this node: check the path.")
    return checked(folder)


def _package(model: Model, cache: Path) -> Path:
    return checked(from_package(model.name, cache))


def _hub(model: Model, cache: Path) -> Path:
    from huggingface_hub import errors, snapshot_download

    try:
        folder = snapshot_download(
            model.name,
            revision=model.revision,
            cache_dir=cache / "hub",
            allow_patterns=HUB_FILES,
            etag_timeout=HUB_PATIENCE_SECONDS,
        )
    except errors.RepositoryNotFoundError:
        raise ValueError(f"The model hub has no public model called {model.name!r}: check its name.") from None
    except (errors.RevisionNotFoundError, errors.HFValidationError) as fault:
        raise ValueError(
            f"The model hub does not accept {model.name!r} at {model.revision or 'main'}: {fault}"
        ) from None
    except (errors.LocalEntryNotFoundError, OSError):
        raise ValueError(
            f"The model {model.name!r} could not be fetched: this node has no network to the model hub, "
            "and no copy of it is stored here. Use a model folder on this node instead."
        ) from None
    return checked(Path(folder))


def checked(folder: Path) -> Path:
    """Return the folder when it looks like a whole Hugging Face model, else raise a sentence."""
    if not (folder / "config.json").is_file():
        raise ValueError(f"{folder} holds no config.json: point to the folder of a Hugging Face model.")
    if not any(path for pattern in WEIGHT_PATTERNS for path in folder.glob(pattern)):
        raise ValueError(f"{folder} holds a config.json but no weights (*.safetensors): copy them there too.")
    if not any((folder / name).is_file() for name in TOKENIZER_FILES):
        raise ValueError(f"{folder} holds no tokenizer (tokenizer.json): copy it there too.")
    return folder

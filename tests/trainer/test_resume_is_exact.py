"""A run that dies anywhere and goes on tells what the uninterrupted one tells, to the last bit. On the real engines."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from interrupted import CASES, STEPS, Case, Values, compared, lines, live, one_generator, spec_of, told, write_folder
from vantage_trainer.model_source import resolve

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def generator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    place, threads = tmp_path_factory.mktemp("generator"), torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("VANTAGE_MODELS", str(place))
        environment.setenv("OMP_NUM_THREADS", "1")
        with one_generator(resolve(spec_of("grpo").model, place), place / "generator.log"):
            yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def whole(generator: None, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Values]:
    """What a run of a kind tells that nobody interrupts."""
    known: dict[str, Values] = {}

    def of(kind: str) -> Values:
        if kind not in known:
            folder = write_folder(tmp_path_factory.mktemp(kind) / "run", spec_of(kind))
            live(folder, 1)
            known[kind] = told(folder, 1)
        return known[kind]

    return of


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_run_that_dies_and_goes_on_equals_the_uninterrupted_one(
    case: Case, whole: Callable[[str], Values], tmp_path: Path
) -> None:
    folder = write_folder(tmp_path / "run", spec_of(case.kind))
    live(folder, 1, case)
    live(folder, 2)
    found = compared(folder, whole(case.kind))
    assert found.differing == [], found.differing[:5]
    assert found.twice and found.num_values > 100 and found.num_completions >= 16 * STEPS
    [resumed] = [line["data"] for line in lines(folder, 2, "events") if line["kind"] == "resumed"]
    assert resumed["stage"] == case.stage and resumed["from_step"] == case.goes_on_from


def test_the_cases_cover_what_they_say(whole: Callable[[str], Values]) -> None:
    grpo, dynamic = whole("grpo"), whole("dynamic")
    prompts = [json.loads(str(value))["prompt_id"] for (_, _, name), value in grpo.items() if name.startswith("sample")]
    assert len(set(prompts)) == 10 < len(prompts) / 4  # an epoch ended and the next began
    assert dynamic[("rl", STEPS, "tokens/generated")] > grpo[("rl", STEPS, "tokens/generated")]
    assert whole("ema") != grpo

"""A generator that is killed is a loss that a new attempt may not meet; one that cannot start is a failure."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from transformers import AutoTokenizer
from vantage_trainer.data import Problem
from vantage_trainer.failure import explained
from vantage_trainer.generation import UNEXPECTED, Generator, GeneratorDied
from vantage_trainer.run import Run
from vantage_trainer.spec import RunSpec, WarmStart
from vantage_trainer.stopping import Stop
from vantage_trainer.tiny import make_tiny
from vantage_trainer.warm_start import warm_start

SLEEPING = "import time; print('Loading 10%', flush=True); time.sleep(60)"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], Generator]]:
    started = []

    def start_one(program: str) -> Generator:
        generator = Generator(make_tiny(tmp_path / "model"), spec=RunSpec(), log=tmp_path / "generator.log")
        generator.command = ("-c", program)
        generator.start()
        started.append(generator)
        return generator

    yield start_one
    for generator in started:
        generator.close()


def kill(generator: Generator) -> None:
    assert generator._process is not None
    os.kill(generator._process.pid, signal.SIGKILL)
    generator._process.wait()


def test_a_killed_generator_is_told_without_the_noise_of_its_log(start: Callable[[str], Generator]) -> None:
    generator = start(SLEEPING)
    generator.check()
    kill(generator)
    with pytest.raises(GeneratorDied) as caught:
        generator.check()
    assert explained(caught.value) == ("generator_died", UNEXPECTED)


def test_an_error_in_the_log_of_a_killed_generator_is_quoted(start: Callable[[str], Generator]) -> None:
    generator = start("import os; print('RuntimeError: no room', flush=True); os.kill(os.getpid(), 9)")
    with pytest.raises(GeneratorDied) as caught:
        generator.wait_ready()
    assert explained(caught.value) == ("generator_died", f"{UNEXPECTED} The log's last words: RuntimeError: no room")


def test_a_generator_that_cannot_start_is_a_failure_of_its_own(start: Callable[[str], Generator]) -> None:
    generator = start("raise ValueError('no such model')")
    with pytest.raises(GeneratorDied) as caught:
        generator.wait_ready()
    code, sentence = explained(caught.value)
    assert code == "generator_unable" and "no such model" in sentence


def test_a_warm_start_notices_that_its_generator_is_gone(start: Callable[[str], Generator], tmp_path: Path) -> None:
    generator = start(SLEEPING)
    kill(generator)
    quiet = SimpleNamespace(event=lambda *told: None)
    imitated = [Problem("1", "1+1=", [1], "2", solution="2")]
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "model")
    parts: dict[str, Any] = {"imitated": imitated, "tokenizer": tokenizer, "journal": quiet, "generator": generator}
    progress = SimpleNamespace(stage="warm_start", step=0)
    run = SimpleNamespace(
        **parts, progress=progress, spec=RunSpec(warm_start=WarmStart()), stop=Stop(tmp_path / "stop")
    )
    with pytest.raises(GeneratorDied):
        warm_start(cast(Run, run))

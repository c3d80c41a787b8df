"""The generator samples by seed, ends as asked, refuses in sentences, and lives exactly as long as its trainer."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer
from vantage_trainer import generation
from vantage_trainer.generation import Completion, Generator, GeneratorDied, GeneratorUnable, Request
from vantage_trainer.spec import RunSpec
from vantage_trainer.sync import SyncError
from vantage_trainer.tiny import make_tiny

pytestmark = pytest.mark.engine
PROMPT = [1, 7, 8, 78, 9, 10]


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture(scope="module")
def generator(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Generator]:
    """Start one engine for the module, on a machine without a compiler: PATH leads to little else than vLLM's lscpu."""
    generator = Generator(model_folder, spec=RunSpec(), log=model_folder.with_name("generator.log"))
    programs = tmp_path_factory.mktemp("programs")
    for name in ("lscpu", "sh", "uname"):
        (programs / name).symlink_to(shutil.which(name) or "/missing")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(programs))
        generator.start()
    yield generator
    generator.close()


def essence(completion: Completion) -> tuple[list[int], list[float]]:
    return completion.token_ids, completion.logps


def test_the_generator_is_no_rank_of_the_trainer(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("VANTAGE_MODELS", "/models")
    found = generation.own_environment()
    assert found["VANTAGE_MODELS"] == "/models" and not any(name.startswith("TORCHELASTIC_") for name in found)
    assert not {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} & set(found)


def test_a_seed_gives_the_same_sample_in_any_company(generator: Generator) -> None:
    requests = [Request([*PROMPT, 7 + seed % 10], seed, 24) for seed in range(48)]
    together = generator.generate(requests)
    alone = generator.generate(requests[5:6]) + generator.generate(requests[6:9])
    assert [essence(c) for c in alone] == [essence(c) for c in together[5:9]]
    assert len({tuple(c.token_ids) for c in together}) == 48


def test_more_prompt_tokens_than_one_step_takes_are_sampled_all_the_same(generator: Generator) -> None:
    requests = [Request([1, *[7 + (seed + i) % 10 for i in range(59)]], seed, 3) for seed in range(300)]
    completions = generator.generate(requests)
    assert {completion.finish for completion in completions} <= {"stop", "length"}
    assert essence(generator.generate(requests[177:178])[0]) == essence(completions[177])


def test_temperature_zero_takes_the_likeliest_token(generator: Generator) -> None:
    first, second = generator.generate([Request(PROMPT, seed, 8, temperature=0.0) for seed in (1, 2)])
    assert first.token_ids == second.token_ids


def test_log_probabilities_are_those_of_the_narrowed_distribution(generator: Generator) -> None:
    [only] = generator.generate([Request(PROMPT, 3, 8, top_k=1)])
    assert only.logps == pytest.approx([0.0] * len(only.logps), abs=1e-6)
    [narrow] = generator.generate([Request(PROMPT, 3, 8, top_p=0.5)])
    assert len(narrow.logps) == len(narrow.token_ids)


def test_a_completion_ends_at_its_limit_or_at_a_stop_string(generator: Generator, model_folder: Path) -> None:
    [whole] = generator.generate([Request(PROMPT, 11, 30)])
    text = AutoTokenizer.from_pretrained(model_folder).decode(whole.token_ids)
    assert (whole.finish, len(whole.token_ids)) == ("length", 30)
    [short] = generator.generate([Request(PROMPT, 11, 30, stop=[text[10:12]])])
    assert short.finish == "stop"
    assert short.token_ids == whole.token_ids[: text.index(text[10:12]) + 2]


@pytest.mark.parametrize(
    ("prompt", "sentence"),
    [([1] * 3000, "has 3000 tokens"), ([], "is empty"), ([1, 5000], "outside the model's vocabulary")],
)
def test_a_prompt_that_cannot_be_read_becomes_an_error_beside_the_others(
    generator: Generator, prompt: list[int], sentence: str
) -> None:
    refused, served = generator.generate([Request(prompt, 1, 4), Request(PROMPT, 1, 4)])
    assert (refused.finish, refused.token_ids) == ("error", [])
    assert sentence in refused.sentence
    assert served.finish == "length"


def test_a_push_with_a_tensor_left_out_or_unknown_is_refused(generator: Generator, model_folder: Path) -> None:
    weights = list(AutoModelForCausalLM.from_pretrained(model_folder).named_parameters())
    with pytest.raises(SyncError, match=r"left out model\.layers\.1\.self_attn\.k_proj\.weight"):
        generator.push([pair for pair in weights if "1.self_attn.k_proj" not in pair[0]], 1)
    with pytest.raises(SyncError, match=r"brought adapter\.weight"):
        generator.push([*weights, ("adapter.weight", weights[0][1])], 1)
    assert generator.generate([Request(PROMPT, 1, 4)])[0].version == 0


def test_zz_a_generator_killed_in_the_middle_of_a_batch_is_reported(generator: Generator) -> None:
    assert generator._process is not None
    threading.Timer(1.0, os.kill, (generator._process.pid, signal.SIGKILL)).start()
    began = time.monotonic()
    with pytest.raises(GeneratorDied, match="ended unexpectedly") as caught:
        for _ in range(100):
            generator.generate([Request(PROMPT, seed, 500) for seed in range(64)])
    assert time.monotonic() - began < 30
    assert caught.value.__notes__[0].startswith("It was killed by signal 9 during")


def test_an_engine_that_cannot_start_says_why(tmp_path: Path) -> None:
    folder = make_tiny(tmp_path / "model")
    (folder / "model.safetensors").write_bytes(b"not weights")
    generator = Generator(folder, spec=RunSpec(), log=tmp_path / "generator.log")
    generator.start()
    with pytest.raises(GeneratorUnable, match="ended with status 1 .*Error"):
        generator.wait_ready()
    generator.close()


def test_a_silent_generator_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = Generator(make_tiny(tmp_path / "model"), spec=RunSpec(), log=tmp_path / "generator.log")
    generator.start()
    assert generator._process is not None
    generator._process.send_signal(signal.SIGSTOP)
    monkeypatch.setitem(generation.PATIENCE, "start", 0.5)
    with pytest.raises(GeneratorDied, match="ended unexpectedly") as caught:
        generator.wait_ready()
    assert caught.value.__notes__ == ["It said nothing for 0 s during start and was ended."]
    generator.close()


ORPHANING = """
import sys, time
from pathlib import Path
from vantage_trainer.generation import Generator
from vantage_trainer.spec import RunSpec
generator = Generator(Path(sys.argv[1]), spec=RunSpec(), log=Path(sys.argv[2]))
generator.start()
print(generator._process.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("delay", [0.0, 3.0])
def test_a_generator_does_not_outlive_a_killed_trainer(tmp_path: Path, delay: float) -> None:
    arguments = [sys.executable, "-c", ORPHANING, str(make_tiny(tmp_path / "model")), str(tmp_path / "generator.log")]
    trainer = subprocess.Popen(arguments, stdout=subprocess.PIPE)
    assert trainer.stdout is not None
    pid = int(trainer.stdout.readline())
    time.sleep(delay)
    trainer.kill()
    trainer.wait()
    trainer.stdout.close()
    deadline = time.monotonic() + 10
    while is_running(pid):
        assert time.monotonic() < deadline, f"process {pid} outlived its trainer"
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False

"""Ask the generator, a process of its own, for completions, and give it new weights."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from vantage_trainer.generator_log import last_error, last_words
from vantage_trainer.model_limits import context_length, text_config
from vantage_trainer.spec import RunSpec
from vantage_trainer.sync import Entry, SyncError, SyncReport, WeightSender
from vantage_trainer.wire import Wire

# Model types whose configuration class ties the head when its file does not say.
TIED_BY_DEFAULT = ("gemma", "gemma2", "gemma3_text", "gpt2")
# How torchrun's settings begin.
RANK_SETTINGS = (
    *("RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE"),
    *("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_", "TORCHRUN_"),
)
# The longest silence that each wait accepts, in seconds; generating speaks at least once per engine step.
PATIENCE = {"start": 600.0, "generate": 300.0, "push": 600.0, "close": 10.0}


UNEXPECTED = "The generator ended unexpectedly, as when memory runs out; the run goes on from its last checkpoint."


class GeneratorDied(RuntimeError):
    """The generator's process ended or fell silent: a new attempt may well go on; a note says how it ended."""


class GeneratorUnable(GeneratorDied):
    """The generator ended by itself before it was ready, as it would again; the text quotes its log."""


@dataclass(frozen=True, slots=True)
class Request:
    """One sample to draw: its own seed, never several from one."""

    prompt_ids: list[int]
    seed: int
    max_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    stop: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Completion:
    """What was sampled: tokens (an end token included), their log-probabilities, how it ended, and by which weights.

    `injected` is the place, from and up to, of tokens that were put there and not sampled; they train nothing.
    """

    token_ids: list[int]
    logps: list[float]
    finish: str  # stop | length | error
    version: int
    sentence: str = ""
    injected: tuple[int, int] = (0, 0)

    @property
    def num_injected(self) -> int:
        return self.injected[1] - self.injected[0]


class Generator:
    """The client of one generator process; it lives no longer than the thread that started it."""

    command: tuple[str, ...] = ("-m", "vantage_trainer.generator")

    def __init__(self, model_folder: Path, *, spec: RunSpec, log: Path) -> None:
        model_folder = Path(model_folder)
        self._settings = _settings(model_folder, spec)
        self._log = Path(log)
        self._process: subprocess.Popen[bytes] | None = None
        self._wire: Wire | None = None
        self._weights = WeightSender(spec.model.dtype, tied=is_tied(model_folder))
        self._ready = False
        self.version = 0
        self.watch: Callable[[int], None] = lambda num_done: None  # hears now and then how many samples are done

    def start(self) -> None:
        """Start the process and return at once; wait_ready() waits for its engine."""
        assert self._process is None, "the generator was already started"
        ours, theirs = socket.socketpair()
        self._wire = Wire(ours)
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with theirs, self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *self.command, str(theirs.fileno()), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=[theirs.fileno()],
                env=own_environment(),
            )
        self._tell(self._settings)

    def wait_ready(self) -> None:
        """Wait until the engine answers; GeneratorDied with the log's last words when it cannot start."""
        if not self._ready:
            self._hear("start")
            self._ready = True

    def check(self) -> None:
        """Raise GeneratorDied when the process, started some time ago, is no more; costs one look."""
        if self._process is not None and self._process.poll() is not None:
            raise self._death("before it was needed")

    def generate(self, requests: list[Request]) -> list[Completion]:
        """Sample one completion per request, in the order of the requests."""
        self.wait_ready()
        self._tell(("generate", requests))
        completions = self._hear("generate")
        if any(completion.version != self.version for completion in completions):
            raise SyncError(f"The generator sampled from other weights than version {self.version}, which it was sent.")
        return completions

    def push(self, named_tensors: Iterable[tuple[str, Tensor]], version: int) -> SyncReport:
        """Give the generator new weights and prove that its kernels use them; SyncError when they do not."""
        self.wait_ready()
        report = self._weights.push(named_tensors, version, self)
        self.version = version
        return report

    def ask_push(self, layout: list[Entry], version: int, buffer: int) -> dict[str, Tensor]:
        """Hand over a filled weight buffer; the answer is what the generator's kernels computed from it."""
        self._tell(("push", (layout, version)))
        assert self._wire is not None
        self._wire.send_handle(buffer)
        return self._hear("push")

    def close(self) -> None:
        """End the process; the second time does nothing."""
        if self._process is None or self._wire is None:
            return
        self._wire.close()
        try:
            self._process.wait(PATIENCE["close"])
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._weights.close()
        self._process = self._wire = None
        self._ready = False

    def _tell(self, message: object) -> None:
        assert self._wire is not None, "the generator is not running: call start()"
        try:
            self._wire.tell(message)
        except OSError:
            raise self._death("while it was being asked") from None

    def _hear(self, wait: str) -> Any:
        """Return the next answer, passing over signs of life."""
        assert self._wire is not None
        while True:
            if not self._wire.has_word(PATIENCE[wait]):
                raise self._silence(wait)
            try:
                kind, content = self._wire.hear()
            except (EOFError, OSError):
                raise self._death(f"during {wait}") from None
            if kind == "refused":
                raise SyncError(content)
            if kind == "answer":
                return content
            self.watch(content)

    def _silence(self, wait: str) -> GeneratorDied:
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        return self._unexpected(f"It said nothing for {PATIENCE[wait]:.0f} s during {wait} and was ended.")

    def _death(self, moment: str) -> GeneratorDied:
        assert self._process is not None
        try:
            status = self._process.wait(PATIENCE["close"])
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        if status > 0 and not self._ready:
            return GeneratorUnable(f"The generator ended with status {status} {moment}. {last_words(self._log)}")
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        return self._unexpected(f"It {how} {moment}.")

    def _unexpected(self, how: str) -> GeneratorDied:
        fault = GeneratorDied(f"{UNEXPECTED} {last_error(self._log)}".rstrip())
        fault.add_note(how)
        return fault


def own_environment() -> dict[str, str]:
    """Leave out what tells the trainer's ranks who they are: the generator's engine is no rank of theirs."""
    return {name: value for name, value in os.environ.items() if not name.startswith(RANK_SETTINGS)}


def _settings(model_folder: Path, spec: RunSpec) -> dict[str, object]:
    return {
        "model": str(model_folder),
        "dtype": spec.model.dtype,
        "length": context_length(model_folder, spec.data.prompt_limit + spec.rollout.response_limit + _injected(spec)),
        "tensor_parallel": spec.resources.tensor_parallel,
        "seed": spec.seed % 2**32,
    }


def _injected(spec: RunSpec) -> int:
    """Room for what interrupts the thinking: a token has at least one byte."""
    return len(spec.rollout.interruption_text.encode()) if spec.algorithm.sampling.interruption else 0


def is_tied(model_folder: Path) -> bool:
    """Tell whether the model's head shares the embedding's weights."""
    config = text_config(model_folder)
    return bool(config.get("tie_word_embeddings", config.get("model_type") in TIED_BY_DEFAULT))

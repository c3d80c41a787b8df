"""A warm process beside the site that knows the mathematics: the site itself never loads torch.

One per web process, started when it is first needed, started again when it has died, and gone when the web process is:
it ends with its standard input. Its answers are kept; the same question asks nobody.
"""

import atexit
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pydantic import JsonValue

COMMAND = (sys.executable, "-P", "-m", "vantage_trainer.asked")
PASSED_ON = ("PATH", "PYTHONPATH", "HOME", "TMPDIR", "LANG", "LD_LIBRARY_PATH", "VIRTUAL_ENV")  # no secrets
QUIET = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONUNBUFFERED": "1"}
LOADING_SECONDS = 120.0  # torch may come from a cold disk
ANSWER_SECONDS = 5.0
TURN_SECONDS = 3.0  # how long a question waits for those before it
RETRY_SECONDS = 30.0  # before what died young is started again
NUM_KEPT = 64
NO_TORCH = 3  # the helper's exit code where torch is missing
LONGEST = 4 * 2**20  # characters of a question


class State(StrEnum):
    ANSWERED = "answered"
    STARTING = "starting"
    REFUSED = "refused"
    AWAY = "away"


SENTENCES = {
    State.STARTING: "The curves are being prepared: PyTorch is loading, which takes some seconds the first time.",
    State.AWAY: "The curves cannot be drawn now: what computes them does not answer. Try again in a minute.",
}
NO_TORCH_SENTENCE = (
    "The curves need PyTorch where the site runs, and it is not installed there; all else works without."
)
TOO_LONG = "This is too much to be computed beside a page; the exported file can be read by vantage_trainer.objective."


@dataclass(frozen=True)
class Reply:
    """What came back: a value, or why there is none."""

    state: State
    value: JsonValue = None
    sentence: str = ""


@dataclass
class Helper:
    """Asks the process one question at a time."""

    command: tuple[str, ...] = COMMAND
    answer_seconds: float = ANSWER_SECONDS
    _turn: threading.Lock = field(default_factory=threading.Lock)
    _process: subprocess.Popen[str] | None = None
    _said: "queue.Queue[str | None]" = field(default_factory=queue.Queue)
    _is_ready: bool = False
    _started: float = 0.0
    _not_before: float = 0.0
    _number: int = 0
    _why: str = SENTENCES[State.AWAY]
    _kept: "OrderedDict[str, Reply]" = field(default_factory=OrderedDict)

    def warm(self) -> None:
        """Start the process if there is none, and wait for nothing."""
        if self._turn.acquire(blocking=False):
            try:
                self._ready(0)
            finally:
                self._turn.release()

    def ask(self, question: Mapping[str, JsonValue], patience: float = 0.0) -> Reply:
        """Answer from what is kept, or from the process; `patience` is how many seconds it may take to start."""
        text = json.dumps(question, sort_keys=True)
        if text in self._kept:
            return self._kept[text]
        if len(text) > LONGEST:
            return Reply(State.REFUSED, sentence=TOO_LONG)
        if not self._turn.acquire(timeout=TURN_SECONDS + patience):
            return Reply(State.AWAY, sentence=SENTENCES[State.AWAY])
        try:
            return self._ready(patience) or self._keep(text, self._asked(question))
        finally:
            self._turn.release()

    def end(self) -> None:
        """Kill the process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(5)
            self._process, self._is_ready = None, False

    def _ready(self, patience: float) -> Reply | None:
        """None: the process waits for a question; else why it does not yet."""
        if self._process is not None and self._process.poll() is not None:
            self._mourn(self._process)
        if self._process is None:
            if time.monotonic() < self._not_before:
                return Reply(State.AWAY, sentence=self._why)
            self._start()
        return None if self._is_ready or self._heard_ready(patience) else self._waiting()

    def _start(self) -> None:
        environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ} | QUIET
        self._said, self._started, self._is_ready = queue.Queue(), time.monotonic(), False
        self._process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd="/"
        )
        threading.Thread(target=_listen, args=(self._process, self._said), daemon=True).start()

    def _heard_ready(self, patience: float) -> bool:
        try:
            self._is_ready = self._said.get(block=patience > 0, timeout=patience or None) is not None
        except queue.Empty:
            return False
        return self._is_ready

    def _waiting(self) -> Reply:
        assert self._process is not None
        if self._process.poll() is not None:
            self._mourn(self._process)
            return Reply(State.AWAY, sentence=self._why)
        if time.monotonic() - self._started > LOADING_SECONDS:
            self._give_up()
            return Reply(State.AWAY, sentence=SENTENCES[State.AWAY])
        return Reply(State.STARTING, sentence=SENTENCES[State.STARTING])

    def _mourn(self, process: subprocess.Popen[str]) -> None:
        """One that has answered is started again at once; one that never was ready, not before a while."""
        self._why = NO_TORCH_SENTENCE if process.returncode == NO_TORCH else SENTENCES[State.AWAY]
        self._not_before = 0.0 if self._is_ready else time.monotonic() + RETRY_SECONDS
        self._process, self._is_ready = None, False

    def _give_up(self) -> None:
        self.end()
        self._why, self._not_before = SENTENCES[State.AWAY], time.monotonic() + RETRY_SECONDS

    def _asked(self, question: Mapping[str, JsonValue]) -> Reply:
        assert self._process is not None and self._process.stdin is not None
        self._number += 1
        try:
            print(json.dumps({**question, "id": self._number}), file=self._process.stdin, flush=True)
            line = self._said.get(timeout=self.answer_seconds)
        except (OSError, queue.Empty):
            line = None
        if line is None:  # it died, or computes for too long: the next question gets a new one
            self.end()
            return Reply(State.AWAY, sentence=SENTENCES[State.AWAY])
        told = json.loads(line)
        assert told["id"] == self._number, "the helper answers in turn"
        if "refusal" in told:
            return Reply(State.REFUSED, sentence=told["refusal"])
        return Reply(State.ANSWERED, told["answer"])

    def _keep(self, text: str, reply: Reply) -> Reply:
        if reply.state in (State.ANSWERED, State.REFUSED):
            self._kept[text] = reply
            while len(self._kept) > NUM_KEPT:
                self._kept.popitem(last=False)
        return reply


def _listen(process: subprocess.Popen[str], said: "queue.Queue[str | None]") -> None:
    assert process.stdout is not None
    for line in process.stdout:
        said.put(line)
    said.put(None)


HELPER = Helper()
atexit.register(HELPER.end)

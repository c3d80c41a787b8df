"""The process that knows the mathematics: warm, restarted, limited, and gone with the one that asks."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
from vantage.algorithms.helper import Helper, State
from vantage_trainer.presets import PRESETS

QUESTION = {"ask": "curves", "group_size": 4, "response_limit": 64}
STAND_IN = """
import json, os, sys, time
print('{"ready": true}', flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("die"): os._exit(1)
    if asked.get("sleep"): time.sleep(60)
    if asked.get("refuse"): print(json.dumps({"id": asked["id"], "refusal": "No."}), flush=True)
    else: print(json.dumps({"id": asked["id"], "answer": [os.getpid(), asked["id"]]}), flush=True)
"""


@pytest.fixture
def helper_of() -> Iterator[Callable[..., Helper]]:
    made: list[Helper] = []

    def start(program: str = STAND_IN, seconds: float = 5) -> Helper:
        made.append(Helper((sys.executable, "-c", program), seconds))
        return made[-1]

    yield start
    for helper in made:
        helper.end()


def test_the_real_one_draws_curves_and_the_objective_of_a_batch() -> None:
    helper = Helper()
    try:
        assert helper.ask({}).state == State.STARTING
        algorithm = PRESETS["grpo"].algorithm.model_dump(mode="json")
        reply = helper.ask(QUESTION | {"algorithm": algorithm}, patience=90)
        assert reply.state == State.ANSWERED and set(reply.value) == {"weight", "advantage", "coefficient"}
        batch = {"group": [0, 0], "reward": [1, 0]}
        reply = helper.ask({"ask": "objective", "algorithm": algorithm, "inputs": batch, "response_limit": 8})
        assert reply.value["advantages"] == pytest.approx([0.7071, -0.7071], abs=1e-4)
        refused = helper.ask({"ask": "objective", "algorithm": algorithm, "inputs": {}, "response_limit": 8})
        assert (refused.state, refused.sentence) == (
            State.REFUSED,
            "inputs.group is missing; give one value per response.",
        )
        k1 = {"regularizer": {"kl": {"estimator": "k1"}}}
        assert "k1 has no expected gradient" in helper.ask(QUESTION | {"algorithm": k1}).sentence
        assert "ask must be one of" in helper.ask({"ask": "what", "algorithm": algorithm}).sentence
    finally:
        helper.end()


def test_the_same_question_is_answered_from_what_is_kept(helper_of: Callable[..., Helper]) -> None:
    helper = helper_of()
    first = helper.ask({"a": 1}, patience=20)
    assert helper.ask({"a": 1}) is first
    assert helper.ask({"a": 2}).value == [first.value[0], 2]
    assert helper.ask({"refuse": True}).sentence == "No."


def test_one_that_has_died_is_started_again(helper_of: Callable[..., Helper]) -> None:
    helper = helper_of()
    first = helper.ask({"a": 1}, patience=20)
    os.kill(first.value[0], signal.SIGKILL)
    time.sleep(0.2)
    assert helper.ask({"a": 2}, patience=20).value[0] != first.value[0]
    assert helper.ask({"die": True}).state == State.AWAY
    assert helper.ask({"a": 3}, patience=20).state == State.ANSWERED


def test_one_that_takes_too_long_is_killed_and_the_next_question_answered(helper_of: Callable[..., Helper]) -> None:
    helper = helper_of(seconds=0.5)
    before = helper.ask({"a": 1}, patience=20)
    assert helper.ask({"sleep": True}).state == State.AWAY
    with pytest.raises(ProcessLookupError):
        os.kill(before.value[0], 0)
    assert helper.ask({"a": 2}, patience=20).state == State.ANSWERED


def test_without_torch_the_page_says_so_and_nothing_is_tried_again_and_again(helper_of: Callable[..., Helper]) -> None:
    helper = helper_of("import sys; sys.exit(3)")
    helper.warm()
    deadline = time.monotonic() + 20
    while (reply := helper.ask({"a": 1})).state == State.STARTING and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (reply.state, "PyTorch" in reply.sentence) == (State.AWAY, True)
    assert helper.ask({"a": 2}).state == State.AWAY and helper._process is None


def test_a_question_that_is_too_long_is_refused(helper_of: Callable[..., Helper]) -> None:
    assert helper_of().ask({"inputs": "x" * 5_000_000}).state == State.REFUSED


def test_it_knows_no_secrets(helper_of: Callable[..., Helper], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VANTAGE_SECRET_KEY", "hush")
    told = "print('{\"ready\": true}', flush=True)\nimport json, os, sys\nfor line in sys.stdin:"
    helper = helper_of(
        told + " print(json.dumps({'id': json.loads(line)['id'], 'answer': dict(os.environ)}), flush=True)"
    )
    environment = helper.ask({"a": 1}, patience=20).value
    assert not {"VANTAGE_SECRET_KEY", "DATABASE_URL", "BROKER_URL"} & set(environment)


def test_it_ends_when_the_one_that_asks_is_killed() -> None:
    program = f"""
import sys, time
from vantage.algorithms.helper import Helper
print(Helper((sys.executable, "-c", {STAND_IN!r})).ask({{"a": 1}}, patience=20).value[0], flush=True)
time.sleep(60)
"""
    asking = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert asking.stdout is not None
    helper = int(asking.stdout.readline())
    asking.kill()
    asking.wait()
    deadline = time.monotonic() + 10
    while os.path.exists(f"/proc/{helper}") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{helper}")


def test_a_line_that_is_no_question_gets_a_sentence() -> None:
    from vantage_trainer.asked import said

    assert "refusal" in said("no json")
    assert said("[]") == {"id": None, "refusal": "A question is one JSON object."}
    assert "Baseline" in str(said(json.dumps({"id": 4, "algorithm": {"baseline": {"kind": "x"}}}))["refusal"])

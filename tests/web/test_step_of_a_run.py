"""A step of a run as its algorithm saw it: tokens with the trust region's verdict, and the step as a batch file."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from vantage.algorithms import explaining
from vantage.algorithms.helper import Reply, State
from vantage.runs.models import Run, Sample
from vantage.runs.step_tokens import verdict
from vantage.teams.models import User
from vantage_trainer.composition import Clip, Truncate
from vantage_trainer.objective import inspect, read_algorithm
from vantage_trainer.presets import PRESETS
from vantage_trainer.spec import RewardPart, RunSpec

Clients = Callable[[User], Client]
GRPO = PRESETS["grpo"].algorithm
TOKENS = {
    "text": ["4", " <b>", "\x00", "\n"],
    "ratio": [1.0, 1.5, 0.5, 1.1],
    "weight": [1.0, 0.0, 0.5, 1.1],
    "keep": [1, 0, 1, 1],
    "coef": [0.03125] * 4,
    "logp": [-0.1, -0.3, -0.9, -0.2],
    "old": [-0.1, -0.7, -0.2, -0.3],
    "behaviour": [-0.1, -0.7, -0.2, -0.3],
    "ref": [-0.2, -0.7, -0.2, -0.3],
}


@pytest.fixture(autouse=True)
def no_helper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explaining.HELPER, "warm", lambda: None)
    monkeypatch.setattr(explaining.HELPER, "ask", lambda question: Reply(State.STARTING, sentence="Loading."))


@pytest.fixture
def run(make_run: Callable[..., Run]) -> Run:
    spec = RunSpec(algorithm=GRPO)
    spec.reward.parts = [RewardPart(weight=0.5), RewardPart(kind="exact", weight=0.5)]
    spec.rollout.response_limit = 1024
    made = make_run(spec=spec.model_dump(mode="json"), status="succeeded", attempt=1)
    for seq, (group, index, right, tokens) in enumerate(
        [(0, 0, 1, TOKENS), (0, 1, 0, None), (1, 0, 1, None), (1, 1, None, None)]
    ):
        add(made, seq, group, index, right, tokens)
    return made


def add(run: Run, seq: int, group: int, index: int, right: int | None, tokens: dict | None) -> None:
    Sample.objects.create(
        run=run,
        attempt=1,
        seq=seq,
        step=3,
        time=0,
        prompt_id=str(group),
        group=group,
        index=index,
        prompt="4 + 4",
        text="8",
        num_tokens=4,
        reward=None if right is None else right - 0.25,  # shaped
        parts={} if right is None else {"numeric": right, "exact": right},
        correct=None if right is None else bool(right),
        advantage=0.7,
        finish="length" if index else "stop",
        version=2,
        tokens=tokens,
    )


def test_the_tokens_of_a_step_are_marked_with_what_became_of_them(people: Any, client_of: Clients, run: Run) -> None:
    page = client_of(people.viewer).get(f"/runs/{run.pk}/objective/").content.decode()
    assert (
        '<span class="token high" data-said="Clipped above: ratio 1.5, weight 0, coefficient 0.03125"> &lt;b&gt;</span>'
        in page
    )
    assert page.count('class="token kept" data-said') == 3
    assert "<mn>0.8</mn>" in page and f"/runs/{run.pk}/objective/3.json" in page


def test_the_formula_of_a_run_holds_its_response_limit(people: Any, client_of: Clients, run: Run) -> None:
    spec = RunSpec.model_validate(run.spec).model_copy(update={"algorithm": PRESETS["dr_grpo"].algorithm})
    Run.objects.filter(pk=run.pk).update(spec=spec.model_dump(mode="json"))
    page = client_of(people.viewer).get(f"/runs/{run.pk}/objective/").content.decode()
    assert "<mn>1024</mn>" in page and 'value="1024"' in page
    answer = client_of(people.viewer).get(f"/runs/{run.pk}/objective/explained/").json()
    assert "<mn>1024</mn>" in answer["formula"] and answer["state"] == "starting"


def test_an_exported_step_is_read_by_the_trainers_command(
    people: Any, client_of: Clients, run: Run, tmp_path: Any
) -> None:
    path = tmp_path / "step.json"
    path.write_bytes(client_of(people.viewer).get(f"/runs/{run.pk}/objective/3.json").content)
    content = json.loads(path.read_text())
    assert read_algorithm(str(path)) == GRPO
    assert content["inputs"]["reward"] == [1.0, 0.0, 1.0, None]
    found = inspect(read_algorithm(str(path)), content["inputs"], content["inputs"]["response_limit"])
    assert found["advantages"] == pytest.approx([0.7071, -0.7071, 0, 0], abs=1e-4)
    assert found["coef"] == [[pytest.approx(1 / (2 * 4))] * 4, [], [], []]
    assert found["weight"][0] == pytest.approx([1, 0, 2.71828**-0.7, 2.71828**0.1], rel=1e-4)


def test_a_step_without_tokens_is_exported_with_its_rewards_alone(people: Any, client_of: Clients, run: Run) -> None:
    Sample.objects.update(tokens=None)
    client = client_of(people.viewer)
    assert "No tokens yet" in client.get(f"/runs/{run.pk}/objective/").content.decode()
    inputs = client.get(f"/runs/{run.pk}/objective/3.json").json()["inputs"]
    assert "logp_new" not in inputs
    assert inspect(GRPO.model_copy(update={"regularizer": RunSpec().algorithm.regularizer}), inputs, 1024)["advantages"]
    assert client.get(f"/runs/{run.pk}/objective/4.json").status_code == 404
    assert client.get(f"/runs/{run.pk}/objective/{10**12}.json").status_code == 404


@pytest.mark.parametrize(
    "odd",
    [{}, {"text": "no list"}, {"text": ["a"], "ratio": "x"}, {"text": [1, None], "ratio": [None], "keep": [{}]}, [], 4],
)
def test_odd_tokens_are_shown_as_not_known(people: Any, client_of: Clients, run: Run, odd: Any) -> None:
    Sample.objects.filter(seq=0).update(tokens=odd)
    client = client_of(people.viewer)
    assert client.get(f"/runs/{run.pk}/objective/").status_code == 200
    assert client.get(f"/runs/{run.pk}/objective/3.json").status_code == 200


@pytest.mark.parametrize(
    ("part", "ratio", "keep", "expected"),
    [
        (Clip(), 1.0, 1.0, "kept"),
        (Clip(), 0.7, 0.0, "low"),
        (Clip(), 1.3, 0.0, "high"),
        (Clip(), 1.3, 1.0, "kept"),
        (Clip(), 1.0, 0.0, "masked"),
        (Truncate(cap=5), 6.0, 1.0, "truncated"),
        (Truncate(cap=5, floor=0.5), 0.4, 1.0, "truncated"),
        (Truncate(cap=5), 0.4, 1.0, "kept"),
        (Clip(), None, 1.0, "unknown"),
    ],
)
def test_a_verdict_follows_from_ratio_and_keep(part: Any, ratio: float, keep: float, expected: str) -> None:
    assert verdict(GRPO.model_copy(update={"trust_region": part}), ratio, keep) == expected


def test_an_outsider_sees_no_step(people: Any, client_of: Clients, run: Run) -> None:
    for part in ("", "explained/", "3.json"):
        assert client_of(people.outsider).get(f"/runs/{run.pk}/objective/{part}").status_code == 404

"""No address, header or form makes the server fail, whatever is written into it."""

from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone
from posting import filled
from vantage.datasets.models import Dataset
from vantage.form_parsing import parse_json
from vantage.numbers import LARGEST, whole
from vantage.runs.models import MetricKey, MetricRow, Run
from vantage.runs.stream import _since
from vantage.runs.templatetags.shown import plain
from vantage.teams.models import User
from vantage_trainer.spec import RunSpec

ClientOf = Callable[[User], Client]
HUGE = "9" * 5000
ADDRESSES = [
    "/runs/?q=%00",
    "/runs/?tag=%00",
    "/runs/?page=²",
    f"/runs/?page={HUGE}",
    "/runs/?q=%23²",
    "/runs/{run}/samples/?q=%00",
    "/runs/{run}/samples/?step=²",
    "/runs/{run}/samples/?page=²",
    "/runs/{run}/charts/?chart=reward&low=-1e308&high=1e308",
    "/runs/{run}/charts/?x=time&chart=reward&low=-1e308&high=1e308",
    "/runs/{run}/charts/?chart=reward&low=1e308&high=-1e308",
    "/runs/{run}/charts/?chart=reward@-1e308",
    "/runs/{run}/?x=%00&smooth=%00",
    "/runs/new/?from=²",
    f"/runs/new/?from={HUGE}",
    "/runs/new/?algorithm=%00",
    "/runs/new/?algorithm=a@²",
    "/algorithms/?deleted=²",
    f"/algorithms/?deleted={HUGE}",
    "/algorithms/new/?from=%00",
    "/datasets/?deleted=²",
    f"/runs/{HUGE[:30]}/",
]
POSTS = [
    ("/runs/change/", {"act": "delete", "run": "²"}),
    ("/runs/change/", {"act": "delete", "run": HUGE}),
    ("/runs/change/", {"act": "tag", "tag": "\0", "run": str(LARGEST)}),
    ("/runs/restore/", {"run": "²"}),
    ("/runs/restore/", {"run": HUGE}),
    ("/team/switch/", {"team": "\0"}),
]
FIELDS = [
    ("optimization.zero_stage", "²"),
    (f"evaluation.sets.{HUGE}.name", "x"),
    ("evaluation.sets.².name", "x"),
    ("reward.parts.0.parameters", "[" * 100_000),
    ("reward.parts.0.parameters", '{"a":' * 300 + "1" + "}" * 300),
    ("data.train", "sums@²"),
    ("data.train", "\0@1"),
    ("run_name", "\0"),
    ("from", "²"),
]


@pytest.fixture
def run(people: object, make_run: Callable[..., Run]) -> Run:
    Dataset.objects.create(team=people.team, name="sums").versions.create(number=1, digest="", num_rows=1)
    made = make_run(spec=RunSpec().model_dump(mode="json"), attempt=1)
    made.attempts.create(number=1, lease_until=timezone.now())
    key = MetricKey.objects.create(name="reward/mean")
    MetricRow.objects.create(run=made, key=key, attempt=1, seq=1, step=1, time=1.0, value=0.5)
    told = {"prompt_id": "1", "group": 1, "index": 0, "prompt": "p", "text": "t", "num_tokens": 1, "version": 0}
    made.samples.create(attempt=1, seq=1, step=1, time=1.0, finish="stop", **told)
    return made


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_address_fails(address: str, run: Run, people: object, client_of: ClientOf) -> None:
    answer = client_of(people.member).get(address.replace("{run}", str(run.pk)))
    assert answer.status_code in (200, 302, 404)


@pytest.mark.parametrize(("address", "posted"), POSTS)
def test_no_post_fails(address: str, posted: dict, run: Run, people: object, client_of: ClientOf) -> None:
    assert client_of(people.member).post(address, posted).status_code in (302, 404)


@pytest.mark.parametrize(("name", "value"), FIELDS)
def test_no_field_of_the_form_fails(name: str, value: str, run: Run, people: object, client_of: ClientOf) -> None:
    member = client_of(people.member)
    sent = filled(member.get(reverse("run_new"))) | {name: value}
    for address in ("run_check", "run_new"):  # as the launch button sends it
        answer = member.post(reverse(address), urlencode(sent), content_type="application/x-www-form-urlencoded")
        assert answer.status_code in (200, 400)


@pytest.mark.parametrize("told", ["²", "9" * 16, HUGE, "-1", "\0", "1"])
def test_no_last_event_id_fails(told: str) -> None:
    assert _since(RequestFactory().get("/stream", headers={"Last-Event-ID": told})) <= timezone.now()


def test_a_whole_number_has_plain_digits_and_fits() -> None:
    read = [whole(text, 99) for text in ("0", "007", "99", "100", "", "+1", "1.0", "²", "٣", HUGE)]
    assert read == [0, 7, 99, None, None, None, None, None, None, None]


def test_json_that_is_nested_too_deeply_stays_text() -> None:
    deep = "[" * 200 + "]" * 200
    assert parse_json(deep) == deep
    assert parse_json('{"a": [1]}') == {"a": [1]}


def test_values_of_a_spec_that_are_not_finite_are_written_by_name() -> None:
    assert [plain(value) for value in (float("inf"), float("-inf"), float("nan"), [1.0, float("inf")])] == [
        "∞",
        "−∞",
        "NaN",
        "1, ∞",
    ]

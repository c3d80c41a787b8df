"""Whatever a trainer has written into its journal, a run's pages answer and charts are standard JSON."""

import json
import math
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from vantage.runs.models import Event, MetricKey, MetricRow, Run
from vantage.teams.models import User

ODD: list[tuple[str, object]] = [
    ("phase", {"name": 7, "progress": "half"}),
    ("phase", {"name": "\ud800", "progress": {"done": "x", "total": math.nan}}),
    ("agreement", {}),
    ("sync", {}),
    ("sync", {"version": "\ud800", "rows": [], "max_error": "much", "seconds": 10**400}),
    ("evaluation", {"pass_at": {"items": 1, "\ud800": "x"}, "low": "x", "high": {}, "n": 5, "set": None}),
    ("checkpoint", {"folder": 3, "bytes": math.nan}),
    ("stage", {"name": None, "steps": "many"}),
    ("waiting", {"what": 3, "since": "yesterday"}),
    ("warning", {"sentence": ["a"]}),
    ("odd", {"items": 3, "\ud800": "\x00"}),
    ("odd", [1, 2]),
]


@pytest.fixture
def run(make_run: Callable[..., Run]) -> Run:
    made = make_run(status="running", attempt=1, started=timezone.now())
    made.attempts.create(number=1, lease_until=timezone.now(), step=3)
    return made


@pytest.mark.parametrize(("kind", "data"), ODD)
@pytest.mark.parametrize("time", [1.0, math.nan, 1e300])
def test_an_odd_event_is_shown(
    run: Run, people: object, client_of: Callable[[User], Client], kind: str, data: object, time: float
) -> None:
    Event.objects.create(run=run, attempt=1, seq=1, step=1, time=time, kind=kind, data=data)
    client = client_of(people.viewer)
    assert client.get(reverse("run_events", args=[run.pk]), {"all": "1"}).status_code == 200
    assert client.get(reverse("run", args=[run.pk])).status_code == 200


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf, 1e300, -1e308])
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("axis", ["time", "tokens"])
def test_an_odd_place_on_an_axis_leaves_charts_standard_json(
    run: Run, people: object, client_of: Callable[[User], Client], odd: float, place: int, axis: str
) -> None:
    Event.objects.create(run=run, attempt=1, seq=1, step=1, time=odd, kind="phase")
    places = [10.0, 20.0, 30.0]
    places[place] = odd
    for name in ("reward/mean", "tokens/generated"):
        key = MetricKey.objects.get_or_create(name=name)[0]
        for step, x in enumerate(places, 1):
            MetricRow.objects.create(run=run, key=key, attempt=1, seq=step, step=step, time=x, value=x)
    for zoom in ({}, {"low": "0", "high": "1"}):
        asked = {"chart": "reward", "x": axis} | zoom
        answer = client_of(people.viewer).get(reverse("run_charts", args=[run.pk]), asked)
        json.loads(answer.content, parse_constant=pytest.fail)
    assert client_of(people.viewer).get(reverse("run_head", args=[run.pk])).status_code == 200

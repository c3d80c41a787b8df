"""What an attempt did past the checkpoint that the next one went on from is kept, and drawn when asked for."""

import json
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from vantage.runs.current import superseded
from vantage.runs.models import MetricKey, MetricRow, Run
from vantage.runs.prepare import resumed
from vantage.runs.states import Outcome
from vantage.teams.models import User

ClientOf = Callable[[User], Client]


@pytest.fixture
def run(make_run: Callable[..., Run]) -> Run:
    """Attempt 1 told steps 1-6, attempt 2 went on from step 4 and told 5-8; each value is its attempt's number."""
    run = make_run(attempt=2, status="running")
    keys = [MetricKey.objects.create(name=name) for name in ("reward/mean", "signal/mixed")]
    MetricRow.objects.bulk_create(
        MetricRow(run=run, attempt=number, seq=step, step=step, time=1e9 + 10 * step, key=key, value=number)
        for number, steps in ((1, range(1, 7)), (2, range(5, 9)))
        for step in steps
        for key in keys
    )
    for number, step in ((1, 6), (2, 8)):
        run.attempts.create(number=number, lease_until=timezone.now(), outcome=Outcome.LOST, step=step)
    run.events.create(attempt=1, seq=1, step=0, time=1e9, kind="phase", data={})
    run.events.create(attempt=2, seq=1, step=4, time=1e9 + 45, kind="resumed", data={})
    resumed(run.pk, 2, 4)
    return run


def traces(client: Client, run: Run, **query: str) -> dict[str, list[dict]]:
    answer = client.get(reverse("run_charts", args=[run.pk]), {"chart": "reward"} | query)
    [figure] = json.loads(answer.content, parse_constant=pytest.fail)["figures"].values()
    return {role: [one for one in figure["data"] if one["meta"]["role"] == role] for role in ("line", "superseded")}


def test_the_current_line_alone_is_drawn_unless_more_is_asked_for(
    run: Run, people: object, client_of: ClientOf
) -> None:
    found = traces(client_of(people.viewer), run)
    assert found["line"][0]["y"] == [1] * 4 + [2] * 4 and not found["superseded"]


def test_superseded_steps_join_on_at_the_checkpoint_behind_the_current_line(
    run: Run, people: object, client_of: ClientOf
) -> None:
    found = traces(client_of(people.viewer), run, superseded="1")
    [lost], [line] = found["superseded"], found["line"]
    assert (lost["x"], lost["y"], lost["meta"]["attempt"]) == ([4, 5, 6], [1, 1, 1], 1)
    assert lost["line"]["dash"] == "dash" and lost["meta"]["order"] < line["meta"]["order"]
    assert line["y"] == [1] * 4 + [2] * 4


def test_they_are_drawn_at_their_own_time_and_in_a_stack_of_their_own(
    run: Run, people: object, client_of: ClientOf
) -> None:
    viewer = client_of(people.viewer)
    [lost] = traces(viewer, run, superseded="1", x="time")["superseded"]
    assert [round(60 * x) for x in lost["x"]] == [40, 50, 60]
    [lost] = traces(viewer, run, superseded="1", chart="signal")["superseded"]
    assert lost["stackgroup"] == "attempt 1"


def test_a_zoom_and_a_tail_hold_only_their_part_of_them(run: Run, people: object, client_of: ClientOf) -> None:
    viewer = client_of(people.viewer)
    [lost] = traces(viewer, run, superseded="1", low="6", high="9")["superseded"]
    assert lost["x"] == [6]
    assert not traces(viewer, run, superseded="1", chart="reward@8")["superseded"]


def test_an_attempt_that_stopped_at_its_checkpoint_has_nothing_superseded(run: Run) -> None:
    assert [one.attempt for one in superseded(run)] == [1]
    run.attempts.filter(number=1).update(step=4)
    assert not superseded(run)


def test_a_whole_attempt_that_was_repeated_from_the_beginning_is_superseded(run: Run) -> None:
    resumed(run.pk, 2, None)
    [one] = superseded(run)
    assert (one.attempt, one.low) == (1, 0)
    [warm] = superseded(run, "warm_start/loss")
    assert (warm.attempt, warm.low) == (1, 0)


def test_the_page_offers_them_where_there_are_any_and_its_address_holds_the_choice(
    run: Run, make_run: Callable[..., Run], people: object, client_of: ClientOf
) -> None:
    viewer = client_of(people.viewer)
    page = viewer.get(reverse("run", args=[run.pk]), {"superseded": "1"}).content.decode()
    assert 'name="superseded" value="1" checked' in page and 'data-superseded="1"' in page
    assert 'name="superseded"' not in viewer.get(reverse("run", args=[make_run().pk])).content.decode()


def test_the_file_of_a_chart_holds_them_in_columns_of_their_own(run: Run, people: object, client_of: ClientOf) -> None:
    address = reverse("run_chart_csv", args=[run.pk, "reward"])
    lines = client_of(people.viewer).get(address, {"superseded": "1"}).content.decode().splitlines()
    assert lines[0] == 'step,reward/mean,"reward/mean (superseded, attempt 1)"'
    assert lines[6] == "6.0,2.0,1.0"
    assert "superseded" not in client_of(people.viewer).get(address).content.decode()

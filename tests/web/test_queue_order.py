"""The order in which runs will start, played through, is the order in which nodes take them."""

import random
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from vantage.nodes.models import Node
from vantage.runs import dispatch
from vantage.runs.ending import Ending, record_end
from vantage.runs.models import Attempt, Run
from vantage.runs.queue_order import UNKNOWN, Play, Work
from vantage.runs.states import ACTIVE, Outcome, Status
from vantage.teams.models import Team

MakeRun = Callable[..., Run]


def cpu_node(name: str = "n1", num: int = 1, **fields: Any) -> Node:
    slots = [{"id": f"cpu{number}", "kind": "cpu", "cores": 2} for number in range(num)]
    return Node.objects.create(name=name, host="here", devices=slots, **fields)


def play(nodes: list[Node], lengths: dict[int, float | None], at_work: list[Work] | None = None) -> Play:
    waiting = list(Run.objects.filter(status=Status.QUEUED).select_related("node"))
    active = Counter(Run.objects.filter(status__in=ACTIVE).values_list("team", flat=True))
    return Play(nodes, at_work or [], waiting, lengths, active)


@pytest.mark.parametrize("seed", range(6))
def test_runs_start_in_the_order_that_was_told(
    seed: int, make_run: MakeRun, people: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "start_supervisor", lambda attempt: None)
    dice = random.Random(seed)
    teams = [people.team, people.other_team, Team.objects.create(name="Third", slug="third")]
    nodes = [cpu_node("n1", 2), cpu_node("n2")]
    lengths: dict[int, float | None] = {}
    now = timezone.now()
    for number in range(12):
        wanted = {"resources": {"training_devices": dice.choice([1, 1, 2])}}
        fields = {"team": dice.choices(teams, [6, 3, 1])[0], "priority": dice.choice([0, 0, 0, 1]), "spec": wanted}
        run = make_run(**fields, turn=now + timedelta(seconds=dice.random()) if number % 3 else None)
        lengths[run.pk] = dice.uniform(10, 500)
    told = [(start.run.pk, start.node.name) for start in play(nodes, lengths).starts()]

    begun, clock, ends, taken = [], 0.0, {}, []
    while True:
        for node in nodes:
            taken = [attempt for attempt, _ in dispatch.take_runs(node)]
            begun += [(attempt.run_id, node.name) for attempt in taken]
            ends |= {attempt.pk: clock + (lengths[attempt.run_id] or 0) for attempt in taken}
        if not ends:
            break
        first = min(ends, key=lambda pk: ends[pk])
        clock = ends.pop(first)
        record_end(Attempt.objects.get(pk=first), Ending(Outcome.SUCCEEDED))
    assert begun == told and len(told) == 12


def test_a_start_tells_what_must_end_before(make_run: MakeRun, people: Any) -> None:
    node, first, second = cpu_node(), make_run(), make_run()
    at_work = [Work(people.team.pk, node.pk, ["cpu0"], 100.0)]
    starts = play([node], {first.pk: 50.0, second.pk: None}, at_work).starts()
    assert [(start.run, start.seconds) for start in starts] == [(first, 100.0), (second, 150.0)]


def test_behind_what_is_of_unknown_length_there_is_an_order_and_no_time(make_run: MakeRun, people: Any) -> None:
    node, other, first, second, third = cpu_node(), cpu_node("n2"), make_run(), make_run(), make_run()
    at_work = [Work(people.team.pk, node.pk, ["cpu0"], None), Work(people.team.pk, other.pk, ["cpu0"], 60.0)]
    starts = play([node, other], {first.pk: 2 * UNKNOWN, second.pk: 10.0}, at_work).starts()
    told = [(start.run, start.node, start.seconds) for start in starts]
    assert told == [(first, other, 60.0), (second, node, None), (third, node, None)]


def test_with_one_slot_teams_take_turns_by_age_and_with_two_each_gets_one(make_run: MakeRun, people: Any) -> None:
    runs = [make_run(), make_run(), make_run(team=people.other_team)]
    lengths: dict[int, float | None] = dict.fromkeys((run.pk for run in runs), 10.0)
    assert [start.run for start in play([cpu_node()], lengths).starts()] == runs
    assert [start.run for start in play([cpu_node("n2", 2)], lengths).starts()] == [runs[0], runs[2], runs[1]]


def test_what_fits_no_node_or_lies_elsewhere_starts_nowhere(make_run: MakeRun) -> None:
    node, gone = cpu_node(), cpu_node("gone")
    make_run(spec={"resources": {"training_devices": 64}})
    make_run(node=gone)
    fits = make_run()
    assert [start.run for start in play([node], {}).starts()] == [fits]

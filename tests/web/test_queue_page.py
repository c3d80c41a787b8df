"""The queue on its page: places, times, reasons, who may change the order; other teams show as no more than that."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from vantage.nodes.models import Node
from vantage.runs.models import Attempt, MetricKey, MetricRow, Run
from vantage.runs.queue_times import Pace, evaluations_left, seconds_left
from vantage.runs.queue_view import Waiting, queue
from vantage.runs.states import Status
from vantage.runs.templatetags.shown import about
from vantage.teams.models import AuditEntry, User
from vantage_trainer.spec import Budget, Evaluation, EvaluationSet, RunSpec, WarmStart

ClientOf = Callable[[User], Client]
MakeRun = Callable[..., Run]
SPEC = RunSpec(budget=Budget(steps=100), evaluation=Evaluation(every_steps=0))


def box(name: str = "box", **fields: Any) -> Node:
    return Node.objects.create(name=name, host="box", devices=[{"id": "cpu0", "kind": "cpu"}], **fields)


def at_work(make_run: MakeRun, node: Node, *, pace: float | None = 6.0, step: int = 40, **fields: Any) -> Run:
    """A run on the node that has reported so many steps at this pace."""
    run = make_run(spec=SPEC.model_dump(mode="json"), status=Status.RUNNING, node=node, attempt=1, **fields)
    now = timezone.now()
    Attempt.objects.create(
        run=run, number=1, node=node, devices=["cpu0"], lease_until=now + timedelta(minutes=1), step=step
    )
    key, _ = MetricKey.objects.get_or_create(name="time/step")
    for number in range(step - 5, step + 1) if pace else ():
        MetricRow.objects.create(run=run, attempt=1, seq=number, key=key, step=number, time=0, value=pace)
    return run


def waits(run: Run) -> Waiting:
    return next(one for one in queue() if one.run.pk == run.pk)


def test_a_run_starts_when_the_one_before_it_ends(make_run: MakeRun) -> None:
    at_work(make_run, box())
    first = make_run(spec=SPEC.model_dump(mode="json"))
    second = make_run(spec=SPEC.model_dump(mode="json") | {"name": "of another shape"})
    assert waits(first).seconds == pytest.approx(360) and waits(first).why == "Devices are busy on box."
    assert waits(second).seconds == pytest.approx(960)  # runs of the same shape took 6 s a step


def test_there_is_no_time_where_nothing_was_reported(make_run: MakeRun) -> None:
    at_work(make_run, box(), pace=None)
    found = waits(make_run())
    assert (found.place, found.starts, found.seconds, about(found.seconds)) == (1, True, None, "not known yet")


def test_what_is_left_counts_warm_start_evaluations_and_limits() -> None:
    heldout = Evaluation(sets=[EvaluationSet(name="h", dataset="d@1")], every_steps=20)
    spec = RunSpec(budget=Budget(steps=90), evaluation=heldout, warm_start=WarmStart(steps=50))
    pace = Pace(step=2.0, evaluation=10.0, warm=0.5, tokens=100.0)
    assert [evaluations_left(spec, step) for step in (0, 1, 40, 80, 90)] == [6, 5, 3, 1, 0]
    assert seconds_left(spec, 0, 10, pace) == 40 * 0.5 + 90 * 2 + 6 * 10
    assert seconds_left(spec, 30, 50, pace) == 60 * 2 + 4 * 10
    assert seconds_left(spec, 0, 10, Pace(step=2.0)) is None and seconds_left(spec, 30, 0, Pace()) is None
    minutes = spec.model_copy(update={"budget": Budget(steps=90, minutes=2)})
    assert seconds_left(minutes, 0, 10, pace, worked=90.0) == 30
    tokens = spec.model_copy(update={"budget": Budget(steps=90, tokens=3500), "evaluation": Evaluation()})
    assert seconds_left(tokens, 30, 50, pace) == 5 * 2


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ({"paused": True}, "No node takes runs just now"),
        ({"heartbeat": timezone.now() - timedelta(hours=1)}, "No node takes runs just now"),
        ({"devices": [{"id": "cpu0", "kind": "cpu", "cores": 2}]}, "No node has the devices"),
    ],
)
def test_a_run_that_no_node_takes_says_why(make_run: MakeRun, state: dict[str, Any], why: str) -> None:
    Node.objects.create(**{"name": "box", "host": "box", "devices": [{"id": "cpu0", "kind": "cpu"}]} | state)
    found = waits(make_run(spec={"resources": {"training_devices": 4}}))
    assert not found.starts and found.why.startswith(why)


def test_a_run_whose_folder_lies_on_a_paused_node_says_so_and_stands_last(make_run: MakeRun) -> None:
    home = box("home", paused=True)
    box()
    held, free = make_run(node=home), make_run()
    assert [one.run for one in queue()] == [free, held]
    assert waits(held).why == "It waits for node home, which holds its folder and is paused."


def test_nothing_of_another_teams_runs_is_shown(make_run: MakeRun, people: Any, client_of: ClientOf) -> None:
    node = box()
    at_work(make_run, node, name="secret at work", team=people.other_team, created_by=people.outsider)
    secret = make_run(name="secret waiting", team=people.other_team, created_by=people.outsider, priority=20)
    mine = make_run(name="ours", created_by=people.member)
    page = client_of(people.admin).get(reverse("nodes")).content.decode()
    assert page.count("another team") == 2 and "ours" in page
    for leak in ("secret", "otto", people.other_team.name, f"/runs/{secret.pk}/", f"order-{secret.pk}", "Urgent</td>"):
        assert leak not in page
    assert [one.run.pk for one in queue()] == [secret.pk, mine.pk]  # its place is all there is to see


def test_the_runs_own_page_shows_place_and_time(make_run: MakeRun, people: Any, client_of: ClientOf) -> None:
    at_work(make_run, box())
    make_run(spec=SPEC.model_dump(mode="json"))
    run = make_run(spec=SPEC.model_dump(mode="json"))
    page = client_of(people.viewer).get(reverse("run", args=[run.pk])).content.decode()
    assert "Place in the queue" in page and "starts in about 16 min" in page and "Devices are busy on box." in page


def change(client: Client, name: str, run: Run, **data: str) -> int:
    return client.post(reverse(name, args=[run.pk]), data).status_code


def test_members_order_their_own_runs_admins_any_and_it_is_on_record(
    make_run: MakeRun, people: Any, client_of: ClientOf
) -> None:
    own, others = make_run(created_by=people.member), make_run(created_by=people.admin)
    member, admin = client_of(people.member), client_of(people.admin)
    assert change(member, "run_priority", own, **{f"priority-{own.pk}": "20"}) == 302
    assert change(member, "run_priority", others, **{f"priority-{others.pk}": "20"}) == 403
    assert change(admin, "run_front", own) == 302 and change(member, "run_front", others) == 403
    assert change(client_of(people.viewer), "run_priority", own) == 403
    assert change(client_of(people.outsider), "run_front", own) == 404
    assert set(Run.objects.values_list("pk", "priority")) == {(own.pk, 20), (others.pk, 0)}
    entry = AuditEntry.objects.get()
    assert (entry.verb, entry.detail) == ("changed priority of run", {"before": 0, "after": 20})


@pytest.mark.parametrize("priority", ["", "7", "1e3", "-10; DROP"])
def test_a_priority_that_has_no_name_changes_nothing(
    priority: str, make_run: MakeRun, people: Any, client_of: ClientOf
) -> None:
    run = make_run(created_by=people.member)
    client_of(people.member).post(reverse("run_priority", args=[run.pk]), {f"priority-{run.pk}": priority})
    run.refresh_from_db()
    assert run.priority == 0 and not AuditEntry.objects.exists()


def test_a_run_moved_to_the_front_takes_its_teams_first_turn_and_no_other_teams(
    make_run: MakeRun, people: Any, client_of: ClientOf
) -> None:
    box()
    names = (("a1", people.team), ("b1", people.other_team), ("a2", people.team), ("a3", people.team))
    runs = {name: make_run(name=name, team=team, created_by=people.member) for name, team in names}
    urgent = make_run(name="a4", priority=10)
    assert change(client_of(people.member), "run_front", runs["a3"]) == 302
    assert [one.run.name for one in queue()] == ["a3", "a4", "a1", "b1", "a2"]
    Run.objects.filter(pk__in=[urgent.pk, runs["a3"].pk]).update(status=Status.STOPPED)
    change(client_of(people.member), "run_front", runs["a2"])
    assert [one.run.name for one in queue()] == ["a2", "b1", "a1"]
    assert AuditEntry.objects.filter(verb="moved run to the front").count() == 2


def test_a_run_that_waits_no_more_keeps_its_priority(make_run: MakeRun, people: Any, client_of: ClientOf) -> None:
    run = make_run(created_by=people.member, status=Status.RUNNING)
    member = client_of(people.member)
    change(member, "run_priority", run, **{f"priority-{run.pk}": "20"})
    change(member, "run_front", run)
    run.refresh_from_db()
    assert (run.priority, run.turn) == (0, None) and not AuditEntry.objects.exists()

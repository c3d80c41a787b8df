"""The nodes' page: machines, their work and the queue; other teams show as no more than that."""

from collections.abc import Callable
from datetime import timedelta

from django.test import Client
from django.urls import reverse
from django.utils import timezone
from vantage.nodes.models import Node
from vantage.runs.models import Attempt, Run
from vantage.runs.states import Kind
from vantage.teams.models import User

ClientOf = Callable[[User], Client]
MakeRun = Callable[..., Run]


def test_foreign_runs_show_as_another_team(people: object, make_run: MakeRun, client_of: ClientOf) -> None:
    node = Node.objects.create(name="box", host="box", devices=[{"id": "cpu0", "kind": "cpu"}])
    for name, team in (("ours", people.team), ("secret", people.other_team)):
        run = make_run(name=name, team=team, status="running")
        Attempt.objects.create(run=run, number=1, node=node, devices=["cpu0"], lease_until=timezone.now())
        make_run(name=f"{name} waiting", team=team)
    page = client_of(people.viewer).get(reverse("nodes")).content.decode()
    assert "ours" in page and "ours waiting" in page
    assert "secret" not in page
    assert page.count("another team") == 2


def test_a_node_without_heartbeat_is_silent(people: object, client_of: ClientOf) -> None:
    Node.objects.create(name="box", host="box", heartbeat=timezone.now() - timedelta(hours=1))
    assert "silent" in client_of(people.viewer).get(reverse("nodes")).content.decode()


def test_without_a_node_the_page_says_how_to_start_one(people: object, client_of: ClientOf) -> None:
    page = client_of(people.viewer).get(reverse("nodes")).content.decode()
    assert "vantage node" in page and "Nothing waits." in page


def test_a_dry_run_at_work_is_shown(people: object, make_run: MakeRun, client_of: ClientOf) -> None:
    spec = {"kind": "dry_run", "run": {}, "prompts": 4, "warm_start": True}
    run = make_run(name="tried", kind=Kind.DRY_RUN, spec=spec, status="running")
    node = Node.objects.create(name="box", host="box", devices=[{"id": "cpu0", "kind": "cpu"}])
    Attempt.objects.create(run=run, number=1, node=node, devices=["cpu0"], lease_until=timezone.now())
    page = client_of(people.viewer).get(reverse("nodes"))
    assert page.status_code == 200 and "tried" in page.content.decode()

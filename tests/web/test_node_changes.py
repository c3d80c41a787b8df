"""Pausing, resuming and removing nodes: who may, what it means for their runs, and what the page asks before."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from vantage.nodes.models import Node
from vantage.runs.dispatch import take_runs
from vantage.runs.models import Attempt, Run
from vantage.runs.states import Status
from vantage.teams.models import AuditEntry, User

ClientOf = Callable[[User], Client]


@pytest.fixture
def box(db: None) -> Node:
    return Node.objects.create(name="box", host="box", devices=[{"id": "cpu0", "kind": "cpu"}])


def post(client: Client, name: str, node: Node, **data: str) -> int:
    return client.post(reverse(name, args=[node.pk]), data).status_code


def test_a_paused_node_takes_nothing_until_it_is_resumed(
    box: Node, make_run: Callable[..., Run], people: Any, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vantage.runs.dispatch.start_supervisor", lambda attempt: None)
    make_run()
    admin = client_of(people.admin)
    assert post(admin, "node_pause", box) == 302 and take_runs(box) == []
    page = admin.get(reverse("nodes")).content.decode()
    assert ">paused<" in page and reverse("node_resume", args=[box.pk]) in page
    assert post(admin, "node_resume", box) == 302 and len(take_runs(box)) == 1
    assert list(AuditEntry.objects.order_by("pk").values_list("verb", "subject")) == [
        ("paused node", "box"),
        ("resumed node", "box"),
    ]


@pytest.mark.parametrize("verb", ["node_pause", "node_resume", "node_remove"])
def test_only_admins_change_nodes(verb: str, box: Node, people: Any, client_of: ClientOf) -> None:
    before = Node.objects.values().get()
    assert post(client_of(people.member), verb, box) == 403 == post(client_of(people.viewer), verb, box)
    assert Client().post(reverse(verb, args=[box.pk])).status_code == 302  # to the login
    assert Node.objects.values().get() == before
    page = client_of(people.member).get(reverse("nodes")).content.decode()
    assert "formaction" not in page


def test_the_page_asks_what_a_pause_shall_mean_for_runs_at_work(
    box: Node, make_run: Callable[..., Run], people: Any, client_of: ClientOf
) -> None:
    run = make_run(team=people.other_team)
    assert Run.objects.claim(run.pk, box)
    make_run(node=box)
    admin = client_of(people.admin)
    page = admin.get(reverse("nodes")).content.decode()
    assert "1 run at work there can go on to its end" in page and "1 waiting run has the folder there" in page
    post(admin, "node_pause", box, runs="back")
    box.refresh_from_db()
    assert box.paused and box.sends_back
    post(admin, "node_resume", box)
    box.refresh_from_db()
    assert not box.paused and not box.sends_back


def test_a_living_node_is_not_removed(box: Node, people: Any, client_of: ClientOf) -> None:
    answer = client_of(people.admin).post(reverse("node_remove", args=[box.pk]), follow=True)
    assert "box is at work: end" in answer.content.decode() and Node.objects.get().removed is None


def test_a_removed_silent_node_is_gone_and_its_runs_are_lost(
    box: Node, make_run: Callable[..., Run], people: Any, client_of: ClientOf
) -> None:
    run, waiting = make_run(), make_run(node=box)
    assert Run.objects.claim(run.pk, box)
    Node.objects.update(heartbeat=timezone.now() - timedelta(minutes=2))
    admin = client_of(people.admin)
    assert "1 run that it worked on is shown as lost" in admin.get(reverse("nodes")).content.decode()
    assert post(admin, "node_remove", box) == 302
    page = admin.get(reverse("nodes")).content.decode()
    assert "No node yet" in page and "box, which holds its folder and was removed" in page
    run.refresh_from_db()
    assert run.status == Status.LOST and run.sentence == "Its node box was removed while it worked there."
    assert waiting.status == Status.QUEUED and Attempt.objects.get().outcome == ""  # it goes on should it come back

"""A person continues a run that has ended, from its last checkpoint, where its folder is."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from vantage.nodes.models import Node
from vantage.runs.models import Attempt, Run
from vantage.runs.states import Outcome, Status
from vantage.teams.models import User

ClientOf = Callable[[User], Client]


@pytest.fixture
def node(db: None) -> Node:
    return Node.objects.create(name="n1", host="here", devices=[{"id": "cpu0", "kind": "cpu"}])


@pytest.fixture
def ended(make_run: Callable[..., Run], node: Node) -> Run:
    """A run that was stopped after its checkpoint at step 120."""
    run = make_run(status=Status.STOPPED, attempt=1, node=node, ended=timezone.now(), sentence="Stopped.", num_lost=2)
    run.attempts.create(number=1, node=node, lease_until=timezone.now(), outcome=Outcome.STOPPED)
    for step in (100, 120):
        run.checkpoints.create(attempt=1, step=step, folder=f"checkpoints/step-{step:06d}")
    return run


def page(client: Client, run: Run) -> str:
    return client.get(reverse("run", args=[run.pk])).content.decode()


def silence(node: Node, hours: int = 1) -> None:
    Node.objects.filter(pk=node.pk).update(heartbeat=timezone.now() - timedelta(hours=hours))


@pytest.mark.parametrize("status", [Status.STOPPED, Status.FAILED, Status.LOST])
def test_a_run_that_ended_is_queued_again_and_claimed_as_its_next_attempt(
    status: str, ended: Run, node: Node, people: object, client_of: ClientOf
) -> None:
    Run.objects.update(status=status)
    member = client_of(people.member)
    assert "It goes on from step 120 on node n1, as attempt 2." in page(member, ended)
    answer = member.post(reverse("run_resume", args=[ended.pk]), follow=True).content.decode()
    assert "Queued. It goes on from step 120 on node n1, as attempt 2." in answer
    ended.refresh_from_db()
    assert (ended.status, ended.ended, ended.sentence, ended.num_lost) == (Status.QUEUED, None, "", 0)
    attempt = Run.objects.claim(ended.pk, node)
    assert attempt and attempt.number == 2
    again = member.post(reverse("run_resume", args=[ended.pk]), follow=True).content.decode()
    assert "It waits or works already" in again and ended.attempts.count() == 2


def test_outsiders_find_nothing_to_resume_and_a_viewer_is_told_why_not(
    ended: Run, people: object, client_of: ClientOf
) -> None:
    address = reverse("run_resume", args=[ended.pk])
    assert client_of(people.outsider).post(address).status_code == 404
    refused = client_of(people.viewer).post(address)
    assert refused.status_code == 403 and "Your role in Lab is viewer" in refused.content.decode()
    assert "Resume this run?" not in page(client_of(people.viewer), ended)
    assert client_of(people.member).get(address).status_code == 405
    ended.refresh_from_db()
    assert ended.status == Status.STOPPED


def test_a_run_without_a_checkpoint_offers_its_clone_instead(ended: Run, people: object, client_of: ClientOf) -> None:
    ended.checkpoints.update(pruned=timezone.now())
    member = client_of(people.member)
    shown = page(member, ended)
    assert "It left no checkpoint to go on from." in shown and "Resume this run?" not in shown
    answer = member.post(reverse("run_resume", args=[ended.pk]), follow=True).content.decode()
    assert "clone the run to begin again" in answer
    ended.refresh_from_db()
    assert ended.status == Status.STOPPED


def test_a_run_that_succeeded_is_not_resumed(ended: Run, people: object, client_of: ClientOf) -> None:
    Run.objects.update(status=Status.SUCCEEDED)
    member = client_of(people.member)
    assert "Resume this run?" not in page(member, ended)
    member.post(reverse("run_resume", args=[ended.pk]))
    ended.refresh_from_db()
    assert ended.status == Status.SUCCEEDED


def test_a_node_that_is_away_is_said_before_and_while_the_run_waits_for_it(
    ended: Run, node: Node, people: object, client_of: ClientOf
) -> None:
    silence(node)
    member = client_of(people.member)
    assert "Its folder lies on node n1, which has been silent since" in page(member, ended)
    member.post(reverse("run_resume", args=[ended.pk]))
    assert "It waits for node n1, which holds its folder and has been silent since" in page(member, ended)
    other = Node.objects.create(name="n2", host="there", devices=node.devices)
    assert Run.objects.claim(ended.pk, other) is None


def test_a_node_that_shares_the_storage_goes_on_in_place_of_one_that_is_away(
    ended: Run, node: Node, people: object, client_of: ClientOf
) -> None:
    silence(node)
    Node.objects.update(storage="nfs")
    Node.objects.create(name="n2", host="there", storage="nfs")
    assert "It goes on from step 120 on node n2" in page(client_of(people.member), ended)


def test_a_checkpoint_amid_the_warm_start_is_named_as_such(ended: Run, people: object, client_of: ClientOf) -> None:
    ended.checkpoints.all().delete()
    ended.checkpoints.create(attempt=1, step=300, folder="checkpoints/start-000300")
    assert "from step 300 of the warm start on node n1" in page(client_of(people.member), ended)
    assert Attempt.objects.count() == 1

"""A node that never returns: its runs are lost, with a sentence; one that does return takes them up again."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from vantage.nodes.models import Node
from vantage.runs.ending import Ending, record_end
from vantage.runs.models import Attempt, Run
from vantage.runs.silence import SILENT_LEASES, lose_silent
from vantage.runs.states import Outcome, Status
from vantage.runs.stopping import stop_run
from vantage.runs.tidying import delete
from vantage.teams.models import User

ClientOf = Callable[[User], Client]


@pytest.fixture
def attempt(make_run: Callable[..., Run], settings: object) -> Attempt:
    """An attempt at work on a node of which nothing has been heard for many leases."""
    node = Node.objects.create(name="n1", host="here", devices=[{"id": "cpu0", "kind": "cpu"}])
    run = make_run()
    made = Run.objects.claim(run.pk, node)
    assert made
    Run.objects.filter(pk=run.pk).move("begin")
    run.checkpoints.create(attempt=1, step=20, folder="checkpoints/step-000020")
    long_ago = timezone.now() - timedelta(seconds=(SILENT_LEASES + 1) * settings.LEASE_SECONDS)
    Node.objects.update(heartbeat=long_ago)
    Attempt.objects.update(lease_until=long_ago)
    return made


def status(attempt: Attempt) -> str:
    return Run.objects.values_list("status", flat=True).get(pk=attempt.run_id)


def test_a_run_on_a_node_silent_for_long_is_lost_and_says_since_when(
    attempt: Attempt, people: object, client_of: ClientOf
) -> None:
    member = client_of(people.member)
    address = reverse("run", args=[attempt.run_id])
    assert "Its node n1 has been silent since" in member.get(address).content.decode()
    assert (lose_silent(), lose_silent()) == (1, 0)
    run = Run.objects.get()
    assert (run.status, run.code) == (Status.LOST, "node_silent")
    page = member.get(address).content.decode()
    assert run.sentence.startswith("Its node n1 has been silent since") and run.sentence in page
    assert "Resume this run?" in page


@pytest.mark.parametrize("alive", ["node", "lease"])
def test_a_late_lease_or_a_silent_node_alone_loses_nothing(alive: str, attempt: Attempt) -> None:
    if alive == "node":
        Node.objects.update(heartbeat=timezone.now())
    else:
        Attempt.objects.update(lease_until=timezone.now())
    assert lose_silent() == 0 and status(attempt) == Status.RUNNING


def test_a_node_that_was_only_cut_off_goes_on_with_its_run(attempt: Attempt) -> None:
    lose_silent()
    assert Attempt.objects.renew(attempt.pk, "here:1")
    run = Run.objects.get()
    assert (run.status, run.sentence, run.attempt) == (Status.RUNNING, "", 1)


def test_a_trainer_that_finished_while_its_node_was_cut_off_has_succeeded(attempt: Attempt) -> None:
    lose_silent()
    assert record_end(attempt, Ending(Outcome.SUCCEEDED, "finished", "Done."))
    assert status(attempt) == Status.SUCCEEDED


def test_once_a_person_has_resumed_it_the_silent_attempt_is_fenced(
    attempt: Attempt, people: object, client_of: ClientOf
) -> None:
    client_of(people.member).post(reverse("run_resume", args=[attempt.run_id]))  # no sweep has called it lost yet
    assert status(attempt) == Status.QUEUED
    assert not Attempt.objects.renew(attempt.pk, "here:1")
    assert not record_end(attempt, Ending(Outcome.SUCCEEDED))
    assert status(attempt) == Status.QUEUED
    assert attempt.node and Run.objects.claim(attempt.run_id, attempt.node)
    other = Node.objects.create(name="n2", host="there", devices=[{"id": "cpu0", "kind": "cpu"}])
    assert not Run.objects.waiting_for(other).exists()


@pytest.mark.parametrize("end", ["stop", "delete"])
def test_a_lost_run_that_is_stopped_or_deleted_does_not_come_back_with_its_node(
    end: str, attempt: Attempt, people: object
) -> None:
    lose_silent()
    if end == "stop":
        assert stop_run(attempt.run, people.member)
    else:
        delete(Run.objects.all(), people.member)
    assert not Attempt.objects.renew(attempt.pk, "here:1")
    assert status(attempt) != Status.RUNNING


def test_a_run_that_was_being_stopped_on_a_silent_node_is_stopped(attempt: Attempt, people: object) -> None:
    assert stop_run(attempt.run, people.member)
    lose_silent()
    assert status(attempt) == Status.STOPPED and not Attempt.objects.live().exists()

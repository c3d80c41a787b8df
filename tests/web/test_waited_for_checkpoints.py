"""What a waiting fork or job begins with is kept on the node, and deleting its parent says who waits."""

from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse
from vantage.runs.folder import RunFolder
from vantage.runs.models import Run
from vantage.runs.protecting import protect
from vantage.runs.states import Status
from vantage.teams.models import User

ClientOf = Callable[[User], Client]


@pytest.fixture
def parent(make_run: Callable[..., Run]) -> Run:
    return make_run(status=Status.SUCCEEDED)


@pytest.fixture
def folder(parent: Run, tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / str(parent.pk))


def kept(parent: Run, folder: RunFolder) -> list[str]:
    protect(parent.pk, folder)
    return sorted(path.name for path in folder.keep.glob("*"))


def test_a_waiting_fork_and_a_waiting_job_keep_their_checkpoints_until_they_are_at_work(
    parent: Run, folder: RunFolder, make_run: Callable[..., Run]
) -> None:
    assert kept(parent, folder) == [] and not folder.keep.exists()
    fork = make_run(parent=parent, parent_step=20, status=Status.QUEUED)
    job = make_run(parent=parent, kind="evaluate", spec={"checkpoint": "start-000007"}, status=Status.STARTING)
    make_run(parent=parent, kind="rescore", spec={}, status=Status.QUEUED)
    assert kept(parent, folder) == ["start-000007", "step-000020"]
    assert not folder.checkpoints()
    Run.objects.filter(pk=fork.pk).update(status=Status.RUNNING)
    assert kept(parent, folder) == ["start-000007"]
    Run.objects.filter(pk=job.pk).update(status=Status.STOPPED)
    assert kept(parent, folder) == []


def test_deleting_a_run_says_which_forks_wait_for_it(
    parent: Run, make_run: Callable[..., Run], people: object, client_of: ClientOf
) -> None:
    make_run(parent=parent, parent_step=20, status=Status.QUEUED, name="daughter")
    make_run(parent=parent, parent_step=20, status=Status.RUNNING, name="grown")
    posted = {"run": parent.pk, "act": "delete"}
    shown = client_of(people.member).post(reverse("runs_change"), posted, follow=True).content.decode()
    assert f"daughter waits to begin with what {parent} left, and still will" in shown
    assert "grown waits" not in shown

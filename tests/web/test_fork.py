"""A fork begins with the weights of another run's checkpoint: offered, refused with sentences, placed, shown."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from posting import filled
from vantage.datasets.models import Dataset
from vantage.nodes.models import Node
from vantage.runs.create import Refused, create_run
from vantage.runs.folder import RunFolder
from vantage.runs.forking import place_parent
from vantage.runs.models import Run
from vantage.teams.models import User
from vantage_trainer.spec import Lora, RunSpec, WarmStart

ClientOf = Callable[[User], Client]


@pytest.fixture
def parent(make_run: Callable[..., Run], people: object, settings: object, tmp_path: Path) -> Run:
    """A run with a warm start, and with a checkpoint of its step 20 on its node."""
    settings.HOME = tmp_path
    Dataset.objects.create(team=people.team, name="sums").versions.create(number=1, digest="", num_rows=1)
    spec = RunSpec(warm_start=WarmStart())
    spec.data.train = "sums@1"
    node = Node.objects.create(name="n1", host="here")
    run = make_run(name="mother", spec=spec.model_dump(mode="json"), status="succeeded", attempt=1, node=node)
    run.checkpoints.create(attempt=1, step=20, folder="checkpoints/step-000020")
    run.checkpoints.create(attempt=1, step=9, folder="checkpoints/step-000009", pruned=timezone.now())
    run.checkpoints.create(attempt=1, step=7, folder="checkpoints/start-000007")
    place = RunFolder.of(run.pk).path / "checkpoints" / "step-000020"
    place.mkdir(parents=True)
    (place / "manifest.json").write_text("{}")
    return run


def spec_of(parent: Run) -> RunSpec:
    return RunSpec.model_validate(parent.spec | {"warm_start": None})


def test_each_kept_checkpoint_of_a_step_offers_a_fork(parent: Run, people: object, client_of: ClientOf) -> None:
    address = reverse("run_checkpoints", args=[parent.pk])
    shown = client_of(people.member).get(address).content.decode()
    assert [f"step={step}" in shown for step in (20, 9, 7)] == [True, False, False]
    assert "Fork" not in client_of(people.viewer).get(address).content.decode()


def test_a_fork_is_launched_from_its_form_and_lineage_stands_on_both_pages(
    parent: Run, people: object, client_of: ClientOf
) -> None:
    member = client_of(people.member)
    page = member.get(reverse("run_new"), {"from": parent.pk, "step": 20})
    assert page.context["root"].get("warm_start").on is False
    assert "begins with the weights of step 20" in page.content.decode()
    assert "f-warm_start" not in member.post(reverse("run_check"), filled(page)).json()["notes"]
    answer = member.post(reverse("run_new"), filled(page) | {"run_name": "daughter", "launch": "1"})
    assert answer.status_code == 302, answer.content.decode()
    fork = Run.objects.get(name="daughter")
    assert (fork.parent, fork.parent_step, fork.keeps_optimizer, fork.node) == (parent, 20, True, parent.node)
    assert RunSpec.model_validate(fork.spec).warm_start is None
    assert "mother</bdi></a>" in member.get(reverse("run", args=[fork.pk])).content.decode()
    assert "daughter</bdi></a>" in member.get(reverse("run", args=[parent.pk])).content.decode()
    parent.deleted = timezone.now()
    parent.save()
    shown = member.get(reverse("run", args=[fork.pk])).content.decode()
    assert "a deleted run" in shown and "mother" not in shown


@pytest.mark.parametrize(
    ("choice", "learning_rate", "kept"),
    [("auto", None, True), ("auto", 0.5, False), ("keep", 0.5, True), ("fresh", None, False)],
)
def test_the_optimizer_state_is_kept_when_its_settings_are_unless_chosen(
    choice: str, learning_rate: float | None, kept: bool, parent: Run, people: object
) -> None:
    spec = spec_of(parent)
    spec.optimization.learning_rate = learning_rate or spec.optimization.learning_rate
    fork = create_run(people.team, people.member, "", spec, parent=parent, parent_step=20, optimizer=choice)
    assert fork.keeps_optimizer is kept


def test_another_model_a_warm_start_and_a_checkpoint_that_is_gone_are_refused_with_sentences(
    parent: Run, people: object
) -> None:
    spec = spec_of(parent)
    spec.model.name, spec.model.lora, spec.warm_start = "tiny-untied", Lora(), WarmStart()
    with pytest.raises(Refused) as refused:
        create_run(people.team, people.member, "", spec, parent=parent, parent_step=9)
    paths = {refusal.path for refusal in refused.value.refusals}
    assert paths >= {"", "model.name", "model.lora", "warm_start"}
    assert "the model has to be the same: set this to tiny." in str(refused.value)
    assert "Run mother keeps no checkpoint of step 9 any more" in str(refused.value)


def test_a_refusal_of_the_whole_fork_is_shown_in_the_form(parent: Run, people: object, client_of: ClientOf) -> None:
    member = client_of(people.member)
    page = member.get(reverse("run_new"), {"from": parent.pk, "step": 9})
    answer = member.post(reverse("run_new"), filled(page) | {"launch": "1"})
    assert answer.status_code == 400 and "keeps no checkpoint of step 9 any more" in answer.content.decode()


def test_nobody_forks_a_foreign_run_and_none_crosses_teams(parent: Run, people: object, client_of: ClientOf) -> None:
    query = {"from": parent.pk, "step": 20}
    assert client_of(people.outsider).get(reverse("run_new"), query).status_code == 404
    assert client_of(people.viewer).get(reverse("run_new"), query).status_code == 403
    with pytest.raises(Refused, match="belongs to another team"):
        create_run(people.other_team, people.outsider, "", spec_of(parent), parent=parent, parent_step=20)


def test_the_parents_checkpoint_is_placed_whole_and_once(parent: Run, people: object) -> None:
    fork = create_run(people.team, people.member, "", spec_of(parent), parent=parent, parent_step=20, optimizer="fresh")
    folder = RunFolder.of(fork.pk)
    folder.path.mkdir(parents=True)
    for _ in range(2):
        place_parent(fork, folder)
    told = json.loads((folder.parent / "fork.json").read_text())
    assert told == {"checkpoint": "step-000020", "keep_optimizer": False}
    assert (folder.parent / "step-000020" / "manifest.json").read_text() == "{}"
    assert not folder.checkpoints()


def test_a_checkpoint_that_was_removed_meanwhile_is_said_to_be_gone(parent: Run, people: object) -> None:
    fork = create_run(people.team, people.member, "", spec_of(parent), parent=parent, parent_step=20)
    (RunFolder.of(parent.pk).path / "checkpoints").rename(RunFolder.of(parent.pk).path / "elsewhere")
    with pytest.raises(OSError, match="the checkpoint of step 20 of its parent is gone"):
        place_parent(fork, RunFolder.of(fork.pk))

"""The form for a new run: sensible at first, never loses what was typed, says beside each field what to change."""

from collections.abc import Callable
from uuid import uuid4

import pytest
from django.db import IntegrityError
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from posting import filled
from vantage.algorithms import store
from vantage.algorithms.models import Algorithm
from vantage.datasets.models import Dataset, DatasetVersion, Row
from vantage.datasets.naming import find
from vantage.runs.create import AlreadyLaunched, create_run
from vantage.runs.drafting import versions_of
from vantage.runs.models import Run
from vantage.runs.pairing import pair
from vantage.runs.table import lines
from vantage.teams.models import Team, User
from vantage_trainer.presets import PRESETS
from vantage_trainer.refusals import pointless
from vantage_trainer.spec import RunSpec

ClientOf = Callable[[User], Client]


@pytest.fixture
def data(people: object) -> Team:
    for name, num_rows in (("sums", 64), ("sums-heldout", 32)):
        dataset = Dataset.objects.create(team=people.team, name=name)
        version = DatasetVersion.objects.create(dataset=dataset, number=1, digest=name, num_rows=num_rows)
        version.rows.create(number=1, prompt="1+1=", answer="2", solution="1+1=2")
    return people.team


def test_the_form_begins_with_a_run_that_can_be_launched(data: Team, people: object, client_of: ClientOf) -> None:
    member = client_of(people.member)
    page = member.get(reverse("run_new"))
    answer = member.post(reverse("run_new"), filled(page) | {"run_name": "first", "launch": "1"})
    run = Run.objects.get()
    assert answer["Location"] == reverse("run", args=[run.pk])
    assert (run.name, run.created_by, run.team) == ("first", people.member, data)
    spec = RunSpec.model_validate(run.spec)
    assert (spec.data.train, spec.evaluation.sets[0].dataset) == ("sums@1", "sums-heldout@1")
    assert spec.algorithm.preset == "grpo"
    assert spec.warm_start and not pointless(spec)


def test_a_refused_form_keeps_what_was_typed_and_says_beside_the_field_what_to_change(
    data: Team, people: object, client_of: ClientOf
) -> None:
    member = client_of(people.member)
    sent = filled(member.get(reverse("run_new"))) | {
        "run_name": "mine",
        "optimization.learning_rate": "0",
        "budget.steps": "many",
        "rollout.temperature": "0.7",
        "launch": "1",
    }
    answer = member.post(reverse("run_new"), sent)
    page = answer.content.decode()
    assert answer.status_code == 400
    assert not Run.objects.exists()
    assert 'value="mine"' in page and 'value="many"' in page and 'value="0.7"' in page
    root = answer.context["root"]
    assert root.get("optimization.learning_rate").errors and root.get("budget.steps").errors


def test_a_form_that_is_sent_twice_launches_one_run_and_a_changed_one_another(
    data: Team, people: object, client_of: ClientOf
) -> None:
    member = client_of(people.member)
    sent = filled(member.get(reverse("run_new"))) | {"launch": "1"}
    first, second = (member.post(reverse("run_new"), sent)["Location"] for _ in range(2))
    assert first == second == reverse("run", args=[Run.objects.get().pk])
    assert member.post(reverse("run_new"), sent | {"seed": "7"})["Location"] != first
    assert Run.objects.count() == data.audit.filter(verb="launched run").count() == 2


def test_a_form_whose_run_was_deleted_since_launches_another(data: Team, people: object, client_of: ClientOf) -> None:
    member = client_of(people.member)
    sent = filled(member.get(reverse("run_new"))) | {"launch": "1"}
    member.post(reverse("run_new"), sent)
    Run.objects.update(deleted=timezone.now())
    assert member.post(reverse("run_new"), sent, follow=True).status_code == 200
    assert list(Run.objects.filter(deleted=None).values_list("number", flat=True)) == [2]


def test_no_two_runs_of_a_team_share_the_token_of_a_launch(data: Team, people: object) -> None:
    spec, token = RunSpec(), uuid4()
    spec.data.train = "sums@1"
    create_run(data, people.member, "", spec, token=token)
    with pytest.raises(AlreadyLaunched, match="launched already, as run 1"):
        create_run(data, people.member, "", spec, token=token)
    with pytest.raises(IntegrityError):
        Run.objects.create(team=data, number=2, name="", spec={}, token=token)


@pytest.mark.parametrize("left_out", ["", "token", "run_name", "algorithm", "warm_start"])
def test_what_is_not_the_whole_form_launches_nothing(
    left_out: str, data: Team, people: object, client_of: ClientOf
) -> None:
    member = client_of(people.member)
    whole = filled(member.get(reverse("run_new")))
    sent = {name: value for name, value in whole.items() if left_out and not name.startswith(left_out)}
    answer = member.post(reverse("run_new"), sent | {"launch": "1"})
    assert answer.status_code == 400 and "did not arrive whole" in answer.content.decode()
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("optimization.learning_rate", "NaN"),
        ("rollout.group_size", "1"),
        ("data.train", ""),
        ("data.train", "nothing@7"),
        ("rollout.prompts_per_step", "0"),
    ],
)
def test_what_cannot_work_is_refused_while_one_types(
    path: str, value: str, data: Team, people: object, client_of: ClientOf
) -> None:
    member = client_of(people.member)
    sent = filled(member.get(reverse("run_new"))) | {path: value}
    answer = member.post(reverse("run_check"), sent).json()
    assert f"f-{path.replace('.', '-')}" in answer["errors"]
    assert all(sentence.endswith(".") for sentences in answer["errors"].values() for sentence in sentences)


def test_a_good_form_is_told_its_size_and_nothing_else(data: Team, people: object, client_of: ClientOf) -> None:
    member = client_of(people.member)
    sent = filled(member.get(reverse("run_new"))) | {"rollout.prompts_per_step": "4", "rollout.response_limit": "100"}
    answer = member.post(reverse("run_check"), sent).json()
    assert answer["errors"] == {}
    assert "3,200" in answer["summary"]


def test_choosing_an_algorithm_fills_its_parts_and_keeps_the_rest(
    data: Team, people: object, client_of: ClientOf
) -> None:
    member = client_of(people.member)
    sent = filled(member.get(reverse("run_new"))) | {"budget.steps": "77", "reference": "dapo", "use_preset": "1"}
    root = member.post(reverse("run_new"), sent).context["root"]
    assert root.get("algorithm.trust_region.high").value == "0.28"
    assert root.get("algorithm.preset").value == "dapo"
    assert root.get("budget.steps").value == "77"


def test_a_clone_begins_as_its_original_and_shows_what_was_changed(
    data: Team, people: object, make_run: Callable[..., Run], client_of: ClientOf
) -> None:
    spec = RunSpec()
    spec.data.train, spec.rollout.temperature = "sums@1", 0.8
    original = make_run(name="old", spec=spec.model_dump(mode="json"))
    member = client_of(people.member)
    page = member.get(reverse("run_new"), {"from": original.pk})
    assert page.context["root"].get("rollout.temperature").value == "0.8"
    assert page.context["run_name"] == "old 2"
    assert page.context["changes"] == []
    sent = filled(page) | {"from": original.pk, "rollout.temperature": "0.9"}
    summary = member.post(reverse("run_check"), sent).json()["summary"]
    assert "<del>0.8</del> <ins>0.9</ins>" in summary


@pytest.mark.parametrize(
    ("names", "train", "held_out"),
    [
        (["sums", "sums-heldout", "latest"], "sums@1", "sums-heldout@1"),
        (["gsm8k-train", "sums-heldout", "gsm8k_test"], "gsm8k-train@1", "gsm8k_test@1"),
        (["words", "sums-heldout", "latest"], "latest@1", None),
        (["sums-heldout"], "sums-heldout@1", None),
        ([], None, None),
    ],
)
def test_the_form_begins_with_datasets_that_belong_together(
    names: list[str], train: str | None, held_out: str | None, people: object
) -> None:
    for name in names:
        Dataset.objects.create(team=people.team, name=name).versions.create(number=1, digest=name, num_rows=1)
    assert pair(versions_of(people.team)) == (
        train and find(people.team, train),
        held_out and find(people.team, held_out),
    )


def test_data_without_solutions_begins_without_a_warm_start_and_refuses_one(
    data: Team, people: object, client_of: ClientOf
) -> None:
    Row.objects.update(solution="")
    member = client_of(people.member)
    page = member.get(reverse("run_new"))
    assert page.context["spec"].warm_start is None
    notes = member.post(reverse("run_check"), filled(page)).json()["notes"]
    assert "random weights" in notes["f-warm_start"][0]
    answer = member.post(reverse("run_new"), filled(page) | {"warm_start": "on", "launch": "1"})
    assert answer.status_code == 400 and not Run.objects.exists()
    assert "sums@1 has none" in answer.context["root"].get("warm_start").errors[0]


@pytest.mark.parametrize("preset", PRESETS)
def test_a_clone_takes_any_preset_and_shows_what_it_gains_and_loses(
    preset: str, data: Team, people: object, make_run: Callable[..., Run], client_of: ClientOf
) -> None:
    original = make_run(name="old", spec=RunSpec(algorithm=PRESETS["grpo"].algorithm).model_dump(mode="json"))
    member = client_of(people.member)
    sent = filled(member.get(reverse("run_new"), {"from": original.pk})) | {"from": original.pk}
    page = member.post(reverse("run_new"), sent | {"reference": preset, "use_preset": "1"})
    assert page.context["spec"].algorithm == PRESETS[preset].algorithm
    checked = member.post(reverse("run_check"), filled(page) | {"from": original.pk})
    assert checked.status_code == 200
    assert ("<ins>–</ins>" in checked.json()["summary"]) == (preset not in ("grpo",))
    assert Run.objects.get() == original


def test_a_run_is_named_after_the_teams_own_algorithm_until_its_parts_differ(
    data: Team, people: object, client_of: ClientOf
) -> None:
    store.save(data, people.member, "mine", PRESETS["dr_grpo"].algorithm, "")
    member = client_of(people.member)
    chosen = filled(member.get(reverse("run_new"))) | {"reference": "mine@1", "use_preset": "1"}
    sent = filled(member.post(reverse("run_new"), chosen)) | {"launch": "1"}
    member.post(reverse("run_new"), sent)
    member.post(reverse("run_new"), sent | {"algorithm.trust_region:clip.low": "0.1"})
    assert [line.algorithm for line in lines(list(Run.objects.order_by("pk")))] == ["mine@1", "mine@1, changed"]
    store.delete(Algorithm.objects.get(), people.admin)
    page = member.get(reverse("run_new"), {"from": Run.objects.earliest("pk").pk})
    assert '<option value="" selected>mine@1</option>' in page.content.decode()


def test_a_refusal_and_the_menu_speak_the_words_of_the_form(data: Team, people: object, client_of: ClientOf) -> None:
    member = client_of(people.member)
    page = member.get(reverse("run_new"))
    titles = dict(page.context["algorithms"])
    assert {name for name, title in titles.items() if "cannot be trained yet" in title} == set()
    chosen = member.post(reverse("run_new"), filled(page) | {"reference": "grpo", "use_preset": "1"})
    alone = filled(chosen) | {"rollout.group_size": "1"}
    errors = member.post(reverse("run_check"), alone).json()["errors"]
    assert "Batch mean (batch_mean)" in errors["f-rollout-group_size"][0]
    listed = member.get(reverse("algorithms")).content.decode()
    assert listed.count("cannot be trained yet") == 0


def test_rows_are_called_by_what_they_are(data: Team, people: object, client_of: ClientOf) -> None:
    page = client_of(people.member).get(reverse("run_new")).content.decode()
    for words in (
        "<legend>Part 1<",
        ">Add a part<",
        "<legend>Evaluation set 1<",
        ">Add an evaluation set<",
        ">Remove<",
    ):
        assert words in page
    titles = [title for _, title, _, _ in client_of(people.member).get(reverse("run_new")).context["sections"]]
    assert "Generation" in titles and "Sampling" not in titles


def test_a_clone_of_the_demo_is_no_demo(
    data: Team, people: object, make_run: Callable[..., Run], client_of: ClientOf
) -> None:
    demo = make_run(tags=["demo", "mine"], spec=RunSpec().model_dump(mode="json"))
    page = client_of(people.member).get(reverse("run_new"), {"from": demo.pk})
    assert page.context["run_tags"] == "mine"


def test_only_the_launch_button_launches(data: Team, people: object, client_of: ClientOf) -> None:
    member = client_of(people.member)
    sent = filled(member.get(reverse("run_new"))) | {"run_name": "typed", "rollout.group_size": "1"}
    page = member.post(reverse("run_new"), sent)
    assert page.status_code == 200 and 'value="typed"' in page.content.decode()
    assert page.context["root"].get("rollout.group_size").errors
    member.post(reverse("run_new"), sent | {"rollout.group_size": "8", "check": "1"})
    assert not Run.objects.exists()


def test_no_foreign_run_is_cloned_and_no_viewer_launches(
    data: Team, people: object, make_run: Callable[..., Run], client_of: ClientOf
) -> None:
    foreign = make_run(team=people.other_team)
    assert client_of(people.member).get(reverse("run_new"), {"from": foreign.pk}).status_code == 404
    for address in ("run_new", "run_check"):
        assert client_of(people.viewer).post(reverse(address), {"run_name": "x"}).status_code == 403


def test_without_a_dataset_the_form_says_what_to_do_first(people: object, client_of: ClientOf) -> None:
    page = client_of(people.member).get(reverse("run_new")).content.decode()
    assert "The team has no dataset yet." in page and reverse("datasets") in page

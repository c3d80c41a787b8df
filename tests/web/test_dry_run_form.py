"""Trying a run before its launch: from the form to a dry run, whose page tells what was found, and back."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from posting import filled
from vantage.datasets.models import Dataset, DatasetVersion
from vantage.runs.jobs import KINDS
from vantage.runs.models import Attempt, Event, Run, Sample
from vantage.runs.states import Kind, Status
from vantage.teams.models import Team, User
from vantage_trainer.jobspec import DryRunSpec
from vantage_trainer.spec import RunSpec

ClientOf = Callable[[User], Client]
TRY = {"try": "1", "try_prompts": "3", "try_warm_start": "on"}


@pytest.fixture
def data(people: object) -> Team:
    for name in ("sums", "sums-heldout"):
        dataset = Dataset.objects.create(team=people.team, name=name)
        version = DatasetVersion.objects.create(dataset=dataset, number=1, digest=name, num_rows=1)
        version.rows.create(number=1, prompt="1+1=", answer="2", solution="1+1=2")
    return people.team


def test_the_form_as_it_stands_is_tried_and_comes_back_whole(data: Team, people: object, client_of: ClientOf) -> None:
    member = client_of(people.member)
    page = member.get(reverse("run_new"))
    sent = filled(page) | {"run_name": "mine", "run_tags": "one, two", "rollout.temperature": "0.7"} | TRY
    answer = member.post(reverse("run_new"), sent)
    job = Run.objects.get()
    assert answer["Location"] == reverse("job", args=[job.pk])
    assert (job.kind, job.status, job.team, job.name) == (Kind.DRY_RUN, Status.QUEUED, data, "Dry run of mine")
    spec = DryRunSpec.model_validate(job.spec)
    assert (spec.prompts, spec.warm_start, spec.run.rollout.temperature) == (3, True, 0.7)
    assert job.datasets == {"train": DatasetVersion.objects.get(dataset__name="sums").pk}
    back = member.get(reverse("run_new"), {"tried": job.pk})
    assert back.context["root"].get("rollout.temperature").value == "0.7"
    assert (back.context["run_name"], back.context["run_tags"]) == ("mine", "one, two")
    launched = member.post(reverse("run_new"), filled(back) | {"launch": "1"})
    run = Run.objects.get(kind=Kind.TRAIN)
    assert launched["Location"] == reverse("run", args=[run.pk])
    assert RunSpec.model_validate(run.spec) == spec.run


def test_pressed_twice_it_is_one_dry_run(data: Team, people: object, client_of: ClientOf) -> None:
    member = client_of(people.member)
    sent = filled(member.get(reverse("run_new"))) | TRY
    first, second = (member.post(reverse("run_new"), sent)["Location"] for _ in range(2))
    assert first == second and Run.objects.count() == 1


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"rollout.group_size": "1"}, "roup"),
        ({"data.train": ""}, "Choose the dataset"),
        ({"try_prompts": "500"}, "between 1 and 12"),
        ({"try_prompts": "many"}, "between 1 and 12"),
    ],
)
def test_what_could_not_be_launched_is_not_tried_and_nothing_typed_is_lost(
    changed: dict[str, str], says: str, data: Team, people: object, client_of: ClientOf
) -> None:
    member = client_of(people.member)
    sent = filled(member.get(reverse("run_new"))) | {"run_name": "mine"} | TRY | changed
    answer = member.post(reverse("run_new"), sent)
    assert answer.status_code == 400 and not Run.objects.exists()
    page = answer.content.decode()
    assert says in page and 'value="mine"' in page


def test_a_dry_run_of_a_fork_names_the_checkpoint_and_goes_where_it_lies(
    data: Team, people: object, make_run: Callable[..., Run], client_of: ClientOf
) -> None:
    from vantage.nodes.models import Node

    spec = RunSpec()
    spec.data.train = "sums@1"
    node = Node.objects.create(name="n1", host="here")
    parent = make_run(spec=spec.model_dump(mode="json"), node=node, attempt=1, status=Status.SUCCEEDED)
    parent.checkpoints.create(attempt=1, step=40, folder="checkpoints/step-000040")
    member = client_of(people.member)
    page = member.get(reverse("run_new"), {"from": parent.pk, "step": 40})
    member.post(reverse("run_new"), filled(page) | TRY)
    job = Run.objects.get(kind=Kind.DRY_RUN)
    assert (job.parent, job.node, job.spec["checkpoint"]) == (parent, node, "step-000040")
    back = member.get(reverse("run_new"), {"tried": job.pk})
    assert (back.context["parent"], back.context["step"]) == (parent, 40)


def test_viewers_and_outsiders_try_nothing(data: Team, people: object, client_of: ClientOf) -> None:
    sent = filled(client_of(people.member).get(reverse("run_new"))) | TRY
    assert client_of(people.viewer).post(reverse("run_new"), sent).status_code == 403
    assert not Run.objects.exists()
    client_of(people.member).post(reverse("run_new"), sent)
    job = Run.objects.get()
    assert client_of(people.outsider).get(reverse("run_new"), {"tried": job.pk}).status_code == 404
    assert client_of(people.outsider).get(reverse("job", args=[job.pk])).status_code == 404
    assert client_of(people.viewer).get(reverse("job", args=[job.pk])).status_code == 200


RESULT = {
    "num_groups": 1,
    "num_responses": 2,
    "num_scored": 1,
    "num_correct": 0,
    "reward": 0.0,
    "signal": {"mixed": 0.0, "all_correct": 0.0, "all_wrong": 0.0, "truncated": 0.0, "errored": 1.0, "stale": 0.0},
    "causes": [["numeric: <b>odd</b>", 1]],
    "lengths": {"mean": 4.0, "median": 4, "p90": 4, "max": 4, "num_cut": 0},
    "seconds": {"numeric": [0.00001, 0.00002]},
    "weights": "own",
    "spent": {"load": 3.0, "generate": 0.2, "reward": 0.0},
    "findings": [{"code": "all_wrong", "sentence": "No answer was right: choose others.", "stops": True}],
}


def finished(make_run: Callable[..., Run], told: dict) -> Run:
    spec = DryRunSpec()
    job = make_run(kind=Kind.DRY_RUN, spec=spec.model_dump(mode="json"), attempt=1, status=Status.SUCCEEDED)
    Attempt.objects.create(run=job, number=1, outcome="succeeded", lease_until="2026-01-01T00:00:00Z")
    Event.objects.create(run=job, attempt=1, seq=1, step=0, time=1.0, kind="result", data=told)
    shared = {"run": job, "attempt": 1, "step": 0, "time": 1.0, "prompt_id": "1", "group": 0, "prompt": "1+1="}
    for index, text in enumerate(("<script>alert(1)</script>", "\x00 \ud800")):
        Sample.objects.create(seq=index + 1, index=index, text=text, num_tokens=4, finish="stop", version=0, **shared)
    return job


def test_its_page_tells_what_was_found_and_leads_back_to_the_form(
    make_run: Callable[..., Run], people: object, client_of: ClientOf
) -> None:
    job = finished(make_run, RESULT)
    page = client_of(people.member).get(reverse("job", args=[job.pk])).content.decode()
    assert "No answer was right: choose others." in page
    assert f"{reverse('run_new')}?tried={job.pk}" in page
    assert "&lt;script&gt;alert(1)" in page and "<script>alert" not in page
    assert "numeric: &lt;b&gt;odd" in page
    assert f"?tried={job.pk}" not in client_of(people.viewer).get(reverse("job", args=[job.pk])).content.decode()


def test_a_result_of_any_content_makes_no_page_fail(
    make_run: Callable[..., Run], people: object, client_of: ClientOf
) -> None:
    for told in ({}, {"findings": None, "seconds": [1], "lengths": {"mean": "x"}, "signal": 3, "spent": None}):
        job = finished(make_run, told)
        assert client_of(people.member).get(reverse("job", args=[job.pk])).status_code == 200


def test_every_kind_of_weights_that_the_job_tells_has_its_words() -> None:
    from vantage.runs.kinds.dry_run import WEIGHTS

    assert set(WEIGHTS) == {"own", "before_warm_start", "warm_start", "fork"}
    assert KINDS[Kind.DRY_RUN].title == "Dry run"

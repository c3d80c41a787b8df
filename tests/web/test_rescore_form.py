"""Scoring a run's stored completions again: the form, the file that the job reads, the page that tells."""

from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse
from vantage.datasets.models import Dataset
from vantage.nodes.models import Node
from vantage.runs.folder import RunFolder
from vantage.runs.models import Attempt, Event, MetricKey, MetricRow, Run, Sample
from vantage.runs.prepare import write_folder
from vantage.runs.states import Kind, Status
from vantage.teams.models import User
from vantage_trainer.jobs.rescore import stored
from vantage_trainer.jobspec import JobFile, RescoreSpec
from vantage_trainer.spec import RunSpec

ClientOf = Callable[[User], Client]
WHOLE = {
    "token": "00000000-0000-0000-0000-000000000001",
    "parts": "list",
    "parts.0.kind": "exact",
    "parts.0.weight": "2",
    "parts.0.parameters": '{"marker": "####"}',
    "correct_threshold": "0.5",
    "failure_share": "0.1",
}


@pytest.fixture
def run(make_run: Callable[..., Run], people: object) -> Run:
    """A run of two attempts: the second went on from step 1, so the first one's step 2 was repeated."""
    dataset = Dataset.objects.create(team=people.team, name="sums")
    version = dataset.versions.create(number=1, digest="sums", num_rows=1)
    version.rows.create(number=1, prompt="1+1=", answer="2")
    node = Node.objects.create(name="gone", host="elsewhere")
    spec = RunSpec().model_dump(mode="json")
    run = make_run(spec=spec, status=Status.SUCCEEDED, attempt=2, node=node, datasets={"train": version.pk})
    Attempt.objects.create(run=run, number=1, superseded_after=1, lease_until="2026-01-01T00:00:00Z")
    Attempt.objects.create(run=run, number=2, resumed_from=1, lease_until="2026-01-01T00:00:00Z")
    for seq, (attempt, step) in enumerate(((1, 1), (1, 2), (2, 2), (2, 3)), 1):
        sample(run, attempt, step, seq)
    return run


def sample(run: Run, attempt: int, step: int, seq: int, **more: object) -> Sample:
    told = {"prompt_id": "1", "group": 0, "index": 0, "prompt": "1+1=", "text": f"{seq} \x00 \ud800", "num_tokens": 4}
    scored = {"reward": 0.0, "parts": {"numeric": 0.0}, "correct": False, "finish": "stop", "version": step}
    place = {"run": run, "attempt": attempt, "step": step, "seq": seq, "time": 1.0}
    return Sample.objects.create(**(told | scored | place | more))


def test_an_edited_reward_is_queued_with_the_run_it_is_about(run: Run, people: object, client_of: ClientOf) -> None:
    member = client_of(people.member)
    page = member.get(reverse("run_rescore", args=[run.pk]))
    assert page.context["root"].get("parts.0.kind").value == "numeric"
    answer = member.post(reverse("run_rescore", args=[run.pk]), WHOLE)
    job = Run.objects.get(kind=Kind.RESCORE)
    assert answer["Location"] == reverse("job", args=[job.pk])
    assert job.parent == run and job.node is None  # what it reads is in Postgres: any node will do
    reward = RescoreSpec.model_validate(job.spec).reward
    assert (reward.parts[0].kind, reward.parts[0].weight, reward.parts[0].parameters) == (
        "exact",
        2,
        {"marker": "####"},
    )
    assert member.post(reverse("run_rescore", args=[run.pk]), WHOLE)["Location"] == answer["Location"]
    assert Run.objects.filter(kind=Kind.RESCORE).count() == 1


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"parts.0.weight": "much"}, "Weight must be a number"),
        ({"parts.0.parameters": '{"markr": 1}'}, "does not accept its parameter markr"),
        ({"parts.0.kind": "magic"}, "must be"),
    ],
)
def test_a_reward_that_cannot_work_is_refused_beside_its_field(
    changed: dict[str, str], says: str, run: Run, people: object, client_of: ClientOf
) -> None:
    answer = client_of(people.member).post(reverse("run_rescore", args=[run.pk]), WHOLE | changed)
    assert answer.status_code == 400 and says in answer.content.decode()
    assert not Run.objects.filter(kind=Kind.RESCORE).exists()


def test_another_part_can_be_added_without_starting_anything(run: Run, people: object, client_of: ClientOf) -> None:
    answer = client_of(people.member).post(reverse("run_rescore", args=[run.pk]), WHOLE | {"form.add": "parts"})
    assert answer.status_code == 200 and len(answer.context["root"].get("parts").children) == 2
    assert not Run.objects.filter(kind=Kind.RESCORE).exists()


def test_a_run_without_completions_is_told_so(run: Run, people: object, client_of: ClientOf) -> None:
    Sample.objects.all().delete()
    answer = client_of(people.member).post(reverse("run_rescore", args=[run.pk]), WHOLE)
    assert answer.status_code == 400 and "has stored no completion yet" in answer.content.decode()


def test_viewers_and_outsiders_score_nothing_again(run: Run, people: object, client_of: ClientOf) -> None:
    for user, status in ((people.viewer, 403), (people.outsider, 404)):
        client, address = client_of(user), reverse("run_rescore", args=[run.pk])
        assert client.get(address).status_code == client.post(address, WHOLE).status_code == status


def test_the_job_is_given_each_step_once_and_any_text(
    run: Run, people: object, client_of: ClientOf, tmp_path: Path
) -> None:
    sample(run, 2, 3, 9, index=1, prompt_id="7")
    client_of(people.member).post(reverse("run_rescore", args=[run.pk]), WHOLE)
    job = Run.objects.get(kind=Kind.RESCORE)
    write_folder(job, RunFolder(tmp_path))
    given = list(stored(tmp_path / "data" / "samples.jsonl"))
    assert [(one.step, one.text[0], one.answer) for one in given] == [
        (1, "1", "2"),
        (2, "3", "2"),
        (3, "4", "2"),
        (3, "9", None),
    ]
    assert given[0].text == "1 \x00 \ud800" and given[0].parts == {"numeric": 0.0}
    assert JobFile.model_validate_json((tmp_path / "job.json").read_text()).spec == RescoreSpec.model_validate(job.spec)


def test_its_page_shows_steps_and_the_completions_that_change(
    run: Run, people: object, client_of: ClientOf, make_run: Callable[..., Run]
) -> None:
    spec = RescoreSpec(run=RunSpec.model_validate(run.spec))
    spec.reward.parts[0].weight = 3.0
    job = make_run(kind=Kind.RESCORE, spec=spec.model_dump(mode="json"), parent=run, attempt=1, status="succeeded")
    verdicts = [{"reward": value, "correct": bool(value), "advantage": value} for value in (0.0, 3.0)]
    odd = sample(run, 2, 3, 8, text="<script>alert(1)</script>", index=1)
    change = {"id": odd.pk, "before": verdicts[0], "after": verdicts[1], "parts": {"numeric": 1.0}, "cause": ""}
    told = {"num": 4, "reward_before": 0.0, "reward_after": 1.5, "right_to_wrong": 0, "wrong_to_right": 1}
    told |= {"changes": [change, {"id": 10**9}, "odd"], "unscored_before": 0, "unscored_after": 0, "sign_flips": 1}
    Event.objects.create(run=job, attempt=1, seq=1, step=0, time=1.0, kind="result", data=told)
    for name, values in (("reward_before", (0.0, 0.1)), ("reward_after", (0.2, 1.5))):
        key = MetricKey.objects.create(name=f"rescore/{name}")
        for step, value in enumerate(values, 1):
            MetricRow.objects.create(run=job, key=key, step=step, attempt=1, seq=step, time=1.0, value=value)
    page = client_of(people.viewer).get(reverse("job", args=[job.pk])).content.decode()
    assert "wrong → correct" in page and "&lt;script&gt;alert(1)" in page and "<script>alert" not in page
    assert page.count("<polyline") == 2 and "<del>1</del> <ins>3</ins>" in page
    assert "?step=3" in page

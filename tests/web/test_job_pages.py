"""Pages of jobs: starting an evaluation and an export, their result, and who may do what."""

import asyncio
import io
import json
import tarfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from vantage.datasets.models import Dataset
from vantage.nodes.models import Node
from vantage.runs.folder import RunFolder
from vantage.runs.models import Event, Run, Sample
from vantage.runs.states import Kind, Outcome, Status
from vantage.teams.models import User
from vantage_trainer.recipes import demo_spec

ClientOf = Callable[[User], Client]
MakeRun = Callable[..., Run]


@pytest.fixture
def node(db: None) -> Node:
    return Node.objects.create(name="n1", host="here", devices=[{"id": "cpu0", "kind": "cpu"}])


@pytest.fixture
def parent(make_run: MakeRun, node: Node, people: Any) -> Run:
    """A run with a checkpoint, and the dataset that it was evaluated on."""
    version = Dataset.objects.create(team=people.team, name="sums").versions.create(number=1, digest="", num_rows=2)
    version.rows.create(number=1, prompt="1+1=", answer="2")
    spec = demo_spec(seed=7)
    spec.evaluation.sets = spec.evaluation.sets[1:]
    spec.evaluation.sets[0].dataset = "sums@1"
    run = make_run(status=Status.SUCCEEDED, attempt=1, node=node, spec=spec.model_dump(mode="json"), name="mother")
    run.checkpoints.create(attempt=1, step=40, folder="checkpoints/step-000040")
    return run


def made(kind: str) -> Run:
    return Run.objects.get(kind=kind)


def test_a_checkpoint_offers_to_be_evaluated_and_exported_to_members(
    parent: Run, people: Any, client_of: ClientOf
) -> None:
    address = reverse("run_checkpoints", args=[parent.pk])
    shown = client_of(people.member).get(address).content.decode()
    assert "Evaluate step-000040" in shown and "Export step-000040" in shown
    hidden = client_of(people.viewer).get(address).content.decode()
    assert "Evaluate step-000040" not in hidden and "Export step-000040" not in hidden


def test_the_form_of_an_evaluation_begins_with_the_sets_of_the_run_and_starts_it(
    parent: Run, people: Any, client_of: ClientOf
) -> None:
    member, address = client_of(people.member), reverse("evaluate_new")
    where = {"from": parent.pk, "checkpoint": "step-000040"}
    shown = member.get(address, where).content.decode()
    assert 'name="sets.0.n"' in shown and 'value="heldout-8"' in shown and 'name="seed"' in shown
    posted = where | {"token": str(uuid4()), "start": "1", "sets": "list", "sets.0.n": "4", "sets.0.limit": "2"}
    answer = member.post(address, posted)
    job = made(Kind.EVALUATE)
    assert answer.status_code == 302 and answer["Location"] == reverse("job", args=[job.pk])
    assert (job.name, job.parent, job.node) == ("Evaluation of mother step-000040", parent, parent.node)
    assert job.spec["sets"][0] | {"n": 4, "limit": 2, "k": []} == job.spec["sets"][0]
    assert (
        job.spec["seed"] == 7 and job.spec["rollout"] == parent.spec["rollout"] and list(job.datasets) == ["heldout-8"]
    )
    assert member.post(address, posted)["Location"] == answer["Location"] and Run.objects.count() == 2


def test_what_cannot_be_evaluated_is_refused_beside_its_field_and_nothing_typed_is_lost(
    parent: Run, people: Any, client_of: ClientOf
) -> None:
    posted = {"token": str(uuid4()), "start": "1", "job_name": "my test", "model.name": "gigantic", "seed": "11"}
    sets = {"sets": "list", "sets.0.name": "a", "sets.0.dataset": "sums@1", "sets.0.n": "2", "sets.0.k": "8"}
    answer = client_of(people.member).post(reverse("evaluate_new"), posted | sets)
    shown = answer.content.decode()
    assert answer.status_code == 400 and "pass@8 needs at least 8 samples per problem" in shown
    assert 'value="my test"' in shown and 'value="11"' in shown and not Run.objects.filter(kind="evaluate").exists()


def test_an_export_starts_with_one_press_and_is_listed_at_its_run(
    parent: Run, people: Any, client_of: ClientOf
) -> None:
    member = client_of(people.member)
    answer = member.post(reverse("export_start", args=[parent.pk]), {"checkpoint": "step-000040"}, follow=True)
    job = made(Kind.EXPORT)
    assert "Export of mother step-000040" in answer.content.decode()
    assert job.spec["model"] == parent.spec["model"] and job.spec["checkpoint"] == "step-000040"
    for address in (reverse("run_checkpoints", args=[parent.pk]), reverse("jobs"), reverse("nodes")):
        assert reverse("job", args=[job.pk]) in member.get(address).content.decode()
    assert "Export of mother" not in member.get(reverse("runs")).content.decode()
    assert member.get(reverse("run_events", args=[job.pk])).status_code == 404
    gone = member.post(reverse("export_start", args=[parent.pk]), {"checkpoint": "step-000099"}, follow=True)
    assert "not kept any more" in gone.content.decode() and Run.objects.count() == 2


def told(job: Run, *results: dict[str, Any]) -> None:
    for seq, data in enumerate(results, 1):
        Event.objects.create(run=job, attempt=job.attempt, seq=seq, step=0, time=1.0, kind="result", data=data)


@pytest.fixture
def evaluated(parent: Run, make_run: MakeRun) -> Run:
    spec = {"kind": "evaluate", "checkpoint": "step-000040", "sets": [{"name": "heldout-8"}]}
    job = make_run(kind=Kind.EVALUATE, parent=parent, spec=spec, attempt=2, status=Status.SUCCEEDED, node=parent.node)
    Run.objects.filter(pk=job.pk).update(datasets={"heldout-8": Dataset.objects.get().versions.get().pk})
    old = {"what": "summary", "set": "stale", "step": 0, "num": 1, "pass_at": {}, "intervals": {}, "length": 1}
    Event.objects.create(
        run=job, attempt=1, seq=1, step=0, time=1.0, kind="result", data=old | {"unscored": 0, "mean": 0}
    )
    problems = {"what": "problems", "set": "heldout-8", "step": 0, "ids": ["1", "<b>2"], "n": [4, 4], "c": [1, 3]}
    summary = {"what": "summary", "set": "heldout-8", "step": 0, "num": 2, "length": 9.5, "unscored": 0, "mean": 0.5}
    curve = {"pass_at": {"1": 0.5, "2": 0.75}, "intervals": {"1": [0.25, 0.75], "2": [0.5, 1.0]}}
    told(job, problems, summary | curve)
    return job


def test_the_result_of_an_evaluation_is_a_table_and_a_curve(evaluated: Run, people: Any, client_of: ClientOf) -> None:
    viewer = client_of(people.viewer)
    shown = viewer.get(reverse("job", args=[evaluated.pk])).content.decode()
    assert "0.500" in shown and "0.250–0.750" in shown and "pass@2" in shown and "stale" not in shown
    assert "&lt;b&gt;2" in shown and "<b>2" not in shown
    answer = json.loads(viewer.get(reverse("job_charts", args=[evaluated.pk])).content)
    low, high, line = answer["figures"]["pass-at-k"]["data"]
    assert line["x"] == [1, 2] and line["y"] == [0.5, 0.75] and (low["y"], high["y"]) == ([0.25, 0.5], [0.75, 1.0])
    assert answer["attempt"] == 2


def test_the_answers_of_an_evaluation_are_read_beside_what_was_expected(
    evaluated: Run, people: Any, client_of: ClientOf
) -> None:
    fields = {"prompt_id": "1", "group": 0, "prompt": "1+1=", "num_tokens": 2, "finish": "stop", "version": 1}
    fields |= {"run": evaluated, "attempt": 2, "step": 0, "time": 1.0}
    for index, text in enumerate(("2", "<i>3")):
        Sample.objects.create(seq=index + 1, index=index, text=text, correct=not index, **fields)
    shown = client_of(people.viewer).get(reverse("job_samples", args=[evaluated.pk])).content.decode()
    assert "1 of 2 correct" in shown and "&lt;i&gt;3" in shown and "<code>2</code>" in shown


@pytest.fixture
def exported(parent: Run, make_run: MakeRun, settings: Any, tmp_path: Path) -> Run:
    settings.HOME = tmp_path
    spec = {"kind": "export", "checkpoint": "step-000040"}
    job = make_run(kind=Kind.EXPORT, parent=parent, spec=spec, attempt=1, status=Status.SUCCEEDED, node=parent.node)
    output = RunFolder.of(job.pk).output
    output.mkdir(parents=True)
    (output / "config.json").write_text("{}")
    (output / "model.safetensors").write_bytes(b"x" * 3_000_000)
    files = [{"name": path.name, "bytes": path.stat().st_size} for path in sorted(output.iterdir())]
    rest = {"dtype": "float32", "tensors": 1, "parameters": 7, "tied": True, "system_prompt": None}
    told(job, {"what": "folder", "folder": str(output), "files": files} | rest)
    return job


def test_an_export_is_downloaded_as_a_tar_that_holds_its_files(exported: Run, people: Any, client_of: ClientOf) -> None:
    viewer = client_of(people.viewer)
    assert "Download as .tar" in viewer.get(reverse("job", args=[exported.pk])).content.decode()
    answer = viewer.get(reverse("job_output", args=[exported.pk]))
    content, name = asyncio.run(whole(answer.streaming_content)), f"export-{exported.number}"
    assert len(content) == int(answer["Content-Length"]) and f"{name}.tar" in answer["Content-Disposition"]
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        sizes = {member.name: member.size for member in tar.getmembers()}
    assert sizes == {f"{name}/config.json": 2, f"{name}/model.safetensors": 3_000_000}


async def whole(pieces: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in pieces])


def test_an_export_on_another_machine_tells_node_and_path(
    exported: Run, people: Any, client_of: ClientOf, settings: Any, tmp_path: Path
) -> None:
    settings.HOME = tmp_path / "elsewhere"
    viewer = client_of(people.viewer)
    shown = viewer.get(reverse("job", args=[exported.pk])).content.decode()
    assert "on node n1, which this site cannot read" in shown and "Download as .tar" not in shown
    assert viewer.get(reverse("job_output", args=[exported.pk])).status_code == 404


def test_members_stop_a_job_and_try_it_again(parent: Run, make_run: MakeRun, people: Any, client_of: ClientOf) -> None:
    job = make_run(kind=Kind.EXPORT, parent=parent, spec={"kind": "export"}, node=parent.node)
    member = client_of(people.member)
    assert "Asked to stop" in member.post(reverse("job_stop", args=[job.pk]), follow=True).content.decode()
    job.refresh_from_db()
    assert job.status == Status.STOPPED
    assert "Queued again" in member.post(reverse("job_again", args=[job.pk]), follow=True).content.decode()
    job.refresh_from_db()
    assert job.status == Status.QUEUED and not job.ended
    assert "waits or works already" in member.post(reverse("job_again", args=[job.pk]), follow=True).content.decode()


def test_a_job_at_work_shows_what_it_does_and_a_lost_attempt_why(
    parent: Run, make_run: MakeRun, people: Any, client_of: ClientOf
) -> None:
    job = make_run(kind=Kind.EVALUATE, parent=parent, spec={}, attempt=2, status=Status.RUNNING, node=parent.node)
    for number, outcome in ((1, Outcome.LOST), (2, Outcome.LIVE)):
        job.attempts.create(number=number, outcome=outcome, lease_until=timezone.now(), sentence="It was killed.")
    data = {"name": "evaluating", "progress": {"done": 40, "total": 64}}
    Event.objects.create(run=job, attempt=2, seq=1, step=0, time=1.0, kind="phase", data=data)
    shown = client_of(people.viewer).get(reverse("job", args=[job.pk])).content.decode()
    assert "40 of 64" in shown and "Evaluating" in shown and "It was killed." in shown and "Stop</button>" not in shown


def test_outsiders_find_no_job_and_viewers_only_read(
    exported: Run, parent: Run, people: Any, client_of: ClientOf
) -> None:
    outsider, viewer = client_of(people.outsider), client_of(people.viewer)
    for name in ("job", "job_charts", "job_samples", "job_output"):
        address = reverse(name, args=[exported.pk])
        assert outsider.get(address).status_code == 404 and viewer.get(address).status_code == 200
    for name, pk in (("job_stop", exported.pk), ("job_again", exported.pk), ("export_start", parent.pk)):
        address = reverse(name, args=[pk])
        assert outsider.post(address).status_code == 404 and viewer.post(address).status_code == 403
        assert viewer.get(address).status_code == 405
    where = {"from": parent.pk, "checkpoint": "step-000040"}
    assert outsider.get(reverse("evaluate_new"), where).status_code == 404
    assert viewer.get(reverse("evaluate_new"), where).status_code == 403
    assert "mother" not in outsider.get(reverse("jobs")).content.decode()

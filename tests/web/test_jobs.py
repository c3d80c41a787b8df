"""Every kind of job is made through one door and lives the life of a run."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from vantage.nodes.models import Node
from vantage.runs.create import AlreadyLaunched, Refused
from vantage.runs.dispatch import take_runs
from vantage.runs.ending import MOST_LOST, Ending, record_end
from vantage.runs.folder import RunFolder
from vantage.runs.jobs import KINDS, create_job, jobs_of, try_again
from vantage.runs.models import Attempt, Run
from vantage.runs.prepare import begin, write_folder
from vantage.runs.states import Kind, Outcome, Status
from vantage.runs.stopping import stop_run
from vantage.teams.models import AuditEntry
from vantage_trainer.jobspec import JOB_SPEC, WITHOUT_DEVICES, ExportSpec, JobFile

JOBS = [kind for kind in Kind.values if kind != Kind.TRAIN]
MakeRun = Callable[..., Run]


@pytest.fixture
def node(db: None) -> Node:
    return Node.objects.create(name="n1", host="here", devices=[{"id": "cpu0", "kind": "cpu"}])


@pytest.fixture
def parent(make_run: MakeRun, node: Node) -> Run:
    run = make_run(status=Status.SUCCEEDED, attempt=1, node=node)
    run.checkpoints.create(attempt=1, step=40, folder="checkpoints/step-000040")
    return run


def test_there_is_a_kind_for_every_job_and_a_spec_for_every_kind() -> None:
    assert list(KINDS) == JOBS
    assert [JOB_SPEC.validate_python({"kind": kind}).kind for kind in JOBS] == JOBS


@pytest.mark.parametrize("kind", JOBS)
def test_a_lost_job_of_any_kind_starts_again_a_few_times_and_old_attempts_are_refused(
    make_run: MakeRun, node: Node, kind: str
) -> None:
    job = make_run(kind=kind)
    gone = Ending(Outcome.LOST, "generator_died", "It died; the run goes on from its last checkpoint.")
    for number in range(1, MOST_LOST + 2):
        attempt = Run.objects.claim(job.pk, node)
        assert attempt and attempt.number == number
        begin(attempt)
        assert record_end(attempt, gone) and not record_end(attempt, gone)
        assert not Attempt.objects.renew(attempt.pk, "here:1")
        job.refresh_from_db()
        assert "from its last checkpoint" not in job.sentence
    assert job.status == Status.FAILED and job.sentence.startswith("It was lost 4 times. It died")
    assert try_again(job) and Run.objects.claim(job.pk, node)


@pytest.mark.parametrize("kind", JOBS)
def test_a_job_of_any_kind_stops_and_drains_as_a_run_does(
    make_run: MakeRun, node: Node, people: Any, kind: str
) -> None:
    job = make_run(kind=kind)
    for ending, status in ((Outcome.DRAINED, Status.QUEUED), (Outcome.STOPPED, Status.STOPPED)):
        attempt = Run.objects.claim(job.pk, node)
        assert attempt
        begin(attempt)
        if ending == Outcome.STOPPED:
            assert stop_run(job, people.member)
        assert record_end(attempt, Ending(ending))
        job.refresh_from_db()
        assert job.status == status
    assert try_again(job) and not try_again(job)


def test_a_job_goes_to_the_node_that_holds_its_parent_and_is_told_in_the_audit_trail(
    parent: Run, people: Any, node: Node
) -> None:
    job = create_job(people.team, people.member, ExportSpec(checkpoint="step-000040"), parent=parent)
    assert (job.kind, job.node, job.parent, job.number) == ("export", node, parent, 2)
    assert list(jobs_of(parent)) == [job] and list(Run.objects.training()) == [parent]
    entry = AuditEntry.objects.get()
    assert (entry.verb, entry.actor) == ("started job", people.member) and entry.subject.startswith("Export")
    other = Node.objects.create(name="n2", host="there", devices=node.devices)
    assert Run.objects.claim(job.pk, other) is None and Run.objects.claim(job.pk, node)


def test_a_form_sent_twice_starts_one_job(parent: Run, people: Any) -> None:
    from uuid import uuid4

    token = uuid4()
    first = create_job(people.team, people.member, ExportSpec(), token=token)
    with pytest.raises(AlreadyLaunched) as known:
        create_job(people.team, people.member, ExportSpec(), token=token)
    assert known.value.run == first


def test_a_job_is_refused_for_another_teams_run_and_for_a_checkpoint_that_is_gone(parent: Run, people: Any) -> None:
    with pytest.raises(Refused, match="another team"):
        create_job(people.other_team, people.outsider, ExportSpec(checkpoint="step-000040"), parent=parent)
    parent.checkpoints.update(pruned=timezone.now())
    with pytest.raises(Refused, match="keeps no checkpoint step-000040 any more"):
        create_job(people.team, people.member, ExportSpec(checkpoint="step-000040"), parent=parent)
    with pytest.raises(Refused, match="choose the run as well"):
        create_job(people.team, people.member, ExportSpec(checkpoint="step-000040"))


def test_jobs_without_an_engine_take_no_device_and_go_one_after_another(make_run: MakeRun, node: Node) -> None:
    at_work, exporting, importing = make_run(), make_run(kind=Kind.EXPORT), make_run(kind=Kind.IMPORT)
    assert Run.objects.claim(at_work.pk, node)
    attempt = Run.objects.claim(exporting.pk, node)
    assert attempt and attempt.devices == [] and set(WITHOUT_DEVICES) > {Kind.EXPORT, Kind.IMPORT}
    assert Run.objects.claim(importing.pk, node) is None
    record_end(attempt, Ending(Outcome.SUCCEEDED))
    assert Run.objects.claim(importing.pk, node)


def test_jobs_without_an_engine_pass_runs_that_wait_for_devices(
    make_run: MakeRun, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vantage.runs.dispatch.start_supervisor", lambda attempt: None)
    first, second, evaluating, exporting = (
        make_run(),
        make_run(),
        make_run(kind=Kind.EVALUATE),
        make_run(kind=Kind.EXPORT),
    )
    assert [attempt.run for attempt, _ in take_runs(node)] == [first, exporting]
    assert Run.objects.filter(status=Status.QUEUED).count() == 2 and second.pk and evaluating.pk


def test_an_evaluation_takes_no_devices_for_training(make_run: MakeRun) -> None:
    gpus = [{"id": f"cuda{number}", "kind": "cuda"} for number in range(2)]
    node = Node.objects.create(name="gpus", host="here", devices=gpus)
    attempts = [Run.objects.claim(make_run(kind=Kind.EVALUATE).pk, node) for _ in range(2)]
    assert [attempt and attempt.devices for attempt in attempts] == [["cuda0"], ["cuda1"]]


def test_the_folder_of_a_job_holds_where_its_parent_lies_and_a_checkpoint_of_its_own(
    parent: Run, people: Any, settings: Any, tmp_path: Any
) -> None:
    settings.HOME = tmp_path
    source = RunFolder.of(parent.pk).path / "checkpoints" / "step-000040"
    source.mkdir(parents=True)
    (source / "manifest.json").write_text("{}")
    job = create_job(people.team, people.member, ExportSpec(checkpoint="step-000040"), parent=parent)
    folder = RunFolder.of(job.pk)
    write_folder(job, folder)
    told = JobFile.model_validate_json(folder.job.read_text())
    assert told.spec == ExportSpec(checkpoint="step-000040") and told.parent == str(RunFolder.of(parent.pk).path)
    assert told.checkpoint == str(folder.path / "parent" / "step-000040")
    (source / "manifest.json").unlink()  # the parent prunes it
    assert (folder.path / "parent" / "step-000040" / "manifest.json").exists() and not folder.spec.exists()


def test_a_checkpoint_that_was_pruned_while_the_job_waited_is_told(
    parent: Run, people: Any, settings: Any, tmp_path: Any
) -> None:
    settings.HOME = tmp_path
    job = create_job(people.team, people.member, ExportSpec(checkpoint="step-000040"), parent=parent)
    with pytest.raises(FileNotFoundError, match="step-000040 of its parent is gone"):
        write_folder(job, RunFolder.of(job.pk))
    assert timezone.now() - job.created < timedelta(minutes=1)

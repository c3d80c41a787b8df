"""Large files and those on the hub become versions as jobs: whole or not at all, with progress, once however asked."""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from vantage.datasets import uploads
from vantage.datasets.models import DatasetVersion, Row, Upload
from vantage.nodes.models import Node
from vantage.runs import import_queue, importing
from vantage.runs.folder import RunFolder, held
from vantage.runs.models import Attempt, Event, Run
from vantage.runs.prepare import write_folder
from vantage.runs.states import Kind, Status
from vantage.teams.models import User
from vantage_trainer import attempt, hub_data
from vantage_trainer.failure import Failure
from vantage_trainer.jobspec import HubFile, ImportSpec
from vantage_trainer.stopping import Stop, Stopped

ClientOf = Callable[[User], Client]
GOOD = b"".join(b'{"question": "%d?", "answer": %d}\n' % (n, n) for n in range(20))
BAD = GOOD + b'{"question": "", "answer": 1}\nnot json\n{"question": "3?", "answer": 3}\n'


@pytest.fixture(autouse=True)
def home(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    settings.HOME = tmp_path
    monkeypatch.setattr(uploads, "AT_ONCE", 100)
    return tmp_path


@pytest.fixture
def node(db: None, home: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """A node that works in the site's home; it holds its lock as its agent would."""
    made = Node.objects.create(name="n.1", host="here", devices=[{"id": "cpu0", "kind": "cpu"}])
    Node.objects.create(name="elsewhere", host="there", devices=[{"id": "cpu0", "kind": "cpu"}])
    (home / "nodes").mkdir()
    (home / "nodes" / "n.1.lock").touch()
    monkeypatch.setattr(import_queue, "is_held", lambda lock: lock.name == "n.1.lock")
    return made


def create(client: Client, content: bytes, **posted: str) -> Any:
    """Upload a file and press create, as a browser follows: the form is sent again to where it is led."""
    file = SimpleUploadedFile("rows.jsonl", content)
    page = client.post("/datasets/new/", {"how": "upload", "name": "sums", "file": file}, follow=True)
    return client.post(page.redirect_chain[-1][0], {"create": "all"} | posted, follow=True)


def work(job: Run) -> attempt.Told:
    """Do in this process what the job's own process does."""
    folder = RunFolder.of(job.pk)
    write_folder(job, folder)
    place = folder.attempt(1).path
    place.mkdir(parents=True, exist_ok=True)
    ours = attempt.Attempt(folder.path, place, io.StringIO(), Stop(place / "stop"))
    told = importing._work(ours)
    ours.let_go(told.outcome == "failed")
    return told


def results(job: Run) -> list[dict[str, Any]]:
    lines = RunFolder.of(job.pk).attempt(1).journal("events").read_text().splitlines()
    return [told["data"] for line in lines if (told := json.loads(line))["kind"] == "result"]


def test_a_large_file_is_queued_on_a_node_that_sees_it_and_stored_whole(
    node: Node, people: Any, client_of: ClientOf
) -> None:
    answer = create(client_of(people.member), GOOD)
    job = Run.objects.get()
    assert answer.redirect_chain[-1][0] == reverse("job", args=[job.pk])
    assert (job.kind, job.node, job.status, job.team) == (Kind.IMPORT, node, Status.QUEUED, people.team)
    assert not DatasetVersion.objects.exists() and Upload.objects.get().importing
    told = work(job)
    assert (told.outcome, told.sentence) == ("succeeded", "sums@1 holds 20 rows.")
    version = DatasetVersion.objects.get()
    assert version.num_rows == Row.objects.count() == 20 and version.created_by == people.member
    assert version.source["filename"] == "rows.jsonl" and version.source["columns"]["prompt"] == "question"
    assert not Upload.objects.exists() and not list((RunFolder.of(job.pk).path.parents[1] / "uploads").iterdir())


def test_the_same_file_asked_for_twice_is_one_job(node: Node, people: Any, client_of: ClientOf) -> None:
    member = client_of(people.member)
    create(member, GOOD)
    address = reverse("dataset_import", args=[Upload.objects.get().pk])
    for _ in range(2):
        member.post(address, {"create": "all"})
    assert Run.objects.count() == 1


def test_without_a_node_that_sees_the_uploads_it_is_done_at_once(db: None, people: Any, client_of: ClientOf) -> None:
    Node.objects.create(name="elsewhere", host="there", devices=[{"id": "cpu0", "kind": "cpu"}])
    create(client_of(people.member), GOOD)
    assert not Run.objects.exists() and DatasetVersion.objects.get().num_rows == 20


def test_a_node_is_beside_the_site_while_its_agent_holds_its_lock(db: None, home: Path) -> None:
    Node.objects.create(name="n1", host="here")
    lock = home / "nodes" / "n1.lock"
    assert import_queue.node_here() is None
    with held(lock):
        found = import_queue.node_here()
        assert found and found.name == "n1"
    assert import_queue.node_here() is None


def test_records_that_cannot_be_used_are_listed_and_can_be_left_out(
    node: Node, people: Any, client_of: ClientOf
) -> None:
    member = client_of(people.member)
    create(member, BAD)
    job = Run.objects.get()
    told = work(job)
    assert (told.outcome, told.code) == ("failed", "bad_records")
    assert told.sentence.startswith("3 records cannot be used and 20 can, so nothing was stored")
    assert not DatasetVersion.objects.exists() and Upload.objects.exists()
    [result] = results(job)
    assert {problem["title"]: problem["total"] for problem in result["problems"]} == {
        "Records without a prompt": 1,
        "Records that cannot be read": 1,
        "The same problem again": 1,
    }
    ended(job, result, Status.FAILED)
    page = member.get(reverse("job", args=[job.pk])).content.decode()
    assert "Line 22 is not valid JSON" in page and reverse("import_without", args=[job.pk]) in page
    answer = member.post(reverse("import_without", args=[job.pk]), {"token": "00000000-0000-0000-0000-000000000001"})
    again = Run.objects.exclude(pk=job.pk).get()
    assert answer["Location"] == reverse("job", args=[again.pk]) and again.spec["leave_out"]
    assert work(again).outcome == "succeeded"
    assert DatasetVersion.objects.get().source["left_out"] == {"prompt": 1, "unreadable": 1, "duplicate": 1}


def ended(job: Run, result: dict[str, Any], status: str) -> None:
    """Store what the supervisor would have."""
    Run.objects.filter(pk=job.pk).update(status=status, attempt=1)
    Attempt.objects.create(run=job, number=1, outcome=status, lease_until="2026-01-01T00:00:00Z")
    Event.objects.create(run=job, attempt=1, seq=1, step=0, time=1.0, kind="result", data=result)


def test_done_again_after_its_rows_were_stored_it_finds_them(node: Node, people: Any, client_of: ClientOf) -> None:
    create(client_of(people.member), GOOD)
    job = Run.objects.get()
    kept = Upload.objects.get()
    content = kept.path.read_bytes()
    work(job)
    kept.save(force_insert=True)  # as if the process had been killed between the two
    kept.path.write_bytes(content)
    assert work(job).sentence == "This content is sums@1 already." and DatasetVersion.objects.count() == 1


def test_a_wish_to_stop_amid_the_storing_leaves_nothing(
    node: Node, people: Any, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(client_of(people.member), GOOD)
    job = Run.objects.get()
    monkeypatch.setattr(importing, "LOOK_EVERY", 1)
    asked = iter([False] * 30 + [True] * 100)
    monkeypatch.setattr(Stop, "check", lambda self: stopped() if next(asked) else None)
    with pytest.raises(Stopped):
        work(job)
    assert not Row.objects.exists() and not DatasetVersion.objects.exists() and Upload.objects.exists()


def stopped() -> None:
    raise Stopped


def test_a_file_that_is_gone_or_not_here_is_told_in_a_sentence(node: Node, people: Any, client_of: ClientOf) -> None:
    create(client_of(people.member), GOOD)
    job = Run.objects.get()
    Upload.objects.get().path.unlink()
    with pytest.raises(Failure, match="does not lie on this node"):
        work(job)
    Upload.objects.all().delete()
    with pytest.raises(Failure, match="no longer kept"):
        work(job)


def test_viewers_and_outsiders_import_nothing(node: Node, people: Any, client_of: ClientOf) -> None:
    create(client_of(people.member), BAD)
    upload, job = Upload.objects.get(), Run.objects.get()
    ended(job, {"num_good": 1, "num_bad": 1}, Status.FAILED)
    addresses = reverse("dataset_import", args=[upload.pk]), reverse("import_without", args=[job.pk])
    for user, status in ((people.viewer, 403), (people.outsider, 404)):
        assert [client_of(user).post(address).status_code for address in addresses] == [status, status]
    assert client_of(people.viewer).post(reverse("dataset_hub"), {"name": "x"}).status_code == 403
    assert Run.objects.count() == 1


def test_the_page_of_datasets_says_how_far_an_import_is(node: Node, people: Any, client_of: ClientOf) -> None:
    create(client_of(people.member), GOOD)
    job = Run.objects.get()
    assert "Waits for a node" in client_of(people.viewer).get("/datasets/").content.decode()
    Run.objects.update(status=Status.RUNNING, attempt=1)
    data = {"name": "storing", "progress": {"done": 1500, "total": 3000}}
    Event.objects.create(run=job, attempt=1, seq=1, step=0, time=1.0, kind="phase", data=data)
    page = client_of(people.viewer).get("/datasets/").content.decode()
    assert "Storing: 1,500 records" in page and 'value="0.5000"' in page
    assert "Import of sums" not in client_of(people.outsider).get("/datasets/").content.decode()


HUB = {"name": "gsm", "token": "00000000-0000-0000-0000-000000000001", "file_there.repository": "openai/gsm8k"}


def test_a_dataset_on_the_hub_is_queued_for_any_node(people: Any, client_of: ClientOf) -> None:
    member = client_of(people.member)
    answer = member.post(reverse("dataset_hub"), HUB | {"file_there.file": "train.jsonl", "columns": "off"})
    job = Run.objects.get()
    assert answer["Location"] == reverse("job", args=[job.pk]) and job.node is None
    spec = ImportSpec.model_validate(job.spec)
    assert spec.hub == HubFile(repository="openai/gsm8k", file="train.jsonl") and spec.columns is None
    member.post(reverse("dataset_hub"), HUB | {"file_there.file": "train.jsonl", "columns": "off"})
    assert Run.objects.count() == 1


@pytest.mark.parametrize(
    ("changed", "says"), [({"file_there.repository": "gsm8k"}, "Dataset"), ({"name": "a b"}, "without spaces")]
)
def test_a_hub_form_that_is_wrong_keeps_what_was_typed(
    changed: dict[str, str], says: str, people: Any, client_of: ClientOf
) -> None:
    sent = HUB | {"file_there.file": "train.jsonl"} | changed
    answer = client_of(people.member).post(reverse("dataset_hub"), sent)
    page = answer.content.decode()
    assert answer.status_code == 400 and says in page and 'value="train.jsonl"' in page
    assert not Run.objects.exists()


def test_without_a_network_the_hub_is_told_of_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(Failure, match="no network to the hub. Download its file elsewhere and upload it here"):
        hub_data.fetch(HubFile(repository="openai/gsm8k"), tmp_path)


@dataclass(frozen=True)
class Listed:
    rfilename: str


def test_a_file_of_the_hub_becomes_a_version(
    people: Any, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fetch(wanted: HubFile, folder: Path) -> hub_data.Fetched:
        folder.mkdir(parents=True)
        (folder / "train.jsonl").write_bytes(GOOD)
        return hub_data.Fetched(folder / "train.jsonl", "train.jsonl", "abc")

    monkeypatch.setattr(hub_data, "fetch", fetch)
    client_of(people.member).post(reverse("dataset_hub"), HUB | {"columns": "off"})
    assert work(Run.objects.get()).sentence == "gsm@1 holds 20 rows."
    source = DatasetVersion.objects.get().source
    assert (source["kind"], source["repository"], source["revision"]) == ("hub", "openai/gsm8k", "abc")
    page = client_of(people.viewer).get("/datasets/").content.decode()
    assert "hub: " in page and "openai/gsm8k, train.jsonl" in page


@pytest.mark.parametrize(
    ("wanted", "files", "found"),
    [
        ("", ["README.md", "rows.csv"], "rows.csv"),
        ("", ["data/train.jsonl", "data/test.jsonl", "dataset_infos.json"], "data/train.jsonl"),
        ("data/test.jsonl", ["data/train.jsonl", "data/test.jsonl"], "data/test.jsonl"),
        ("", ["a.jsonl", "b.jsonl"], "Say which file of o/d is meant; it has: a.jsonl, b.jsonl."),
        ("c.jsonl", ["a.jsonl"], "o/d has no file c.jsonl; it has: a.jsonl."),
        ("", ["data/train-00000.parquet"], "as Parquet, which is not taken yet"),
    ],
)
def test_the_file_that_is_meant_is_found_or_those_there_are_named(wanted: str, files: list[str], found: str) -> None:
    asked = HubFile(repository="o/d", file=wanted)
    if found in files:
        assert hub_data.chosen(asked, files) == found
    else:
        with pytest.raises(Failure, match=found):
            hub_data.chosen(asked, files)

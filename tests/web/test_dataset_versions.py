"""Versions are immutable, told apart by content, and named name@number inside a team."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from vantage.datasets.generators import create_generated
from vantage.datasets.models import Dataset, DatasetVersion, Row
from vantage.datasets.naming import choices, find
from vantage.datasets.overlap import overlap
from vantage.datasets.problems import NewRow
from vantage.datasets.store import create_version
from vantage.teams.models import User

Clients = Callable[[User], Client]
SMALL = {"num": 100, "seed": 1, "terms": 3, "digits": 1, "estimates": 0.0, "heldout": False}


def rows(*prompts: str) -> list[NewRow]:
    return [NewRow(prompt, "1") for prompt in prompts]


def test_the_same_content_is_the_same_version(people: Any) -> None:
    first, is_new = create_version(people.team, people.member, "sums", rows("a", "b"), {})
    again, is_again_new = create_version(people.team, people.member, "sums", rows("a", "b"), {})
    assert (is_new, is_again_new, again) == (True, False, first)
    assert (DatasetVersion.objects.count(), Row.objects.count()) == (1, 2)


def test_other_content_is_the_next_version(people: Any) -> None:
    create_version(people.team, people.member, "sums", rows("a", "b"), {})
    second, _ = create_version(people.team, people.member, "sums", rows("b", "a"), {})
    assert str(second) == "sums@2"


def test_a_failure_halfway_leaves_nothing(people: Any) -> None:
    def broken() -> Iterator[NewRow]:
        yield from rows("a", "b")
        raise ValueError("the disk is gone")

    with pytest.raises(ValueError, match="the disk is gone"):
        create_version(people.team, people.member, "sums", broken(), {})
    assert not (Dataset.objects.exists() or DatasetVersion.objects.exists() or Row.objects.exists())


def test_no_rows_are_no_version(people: Any) -> None:
    with pytest.raises(ValueError, match="0 rows are left"):
        create_version(people.team, people.member, "sums", [], {})
    assert not Dataset.objects.exists()


def test_a_generated_dataset_is_found_again_by_its_parameters(people: Any) -> None:
    version, is_new = create_generated(people.team, people.member, "sums", "arithmetic", SMALL)
    assert (is_new, version.num_rows) == (True, 100)
    assert create_generated(people.team, people.member, "sums", "arithmetic", SMALL) == (version, False)
    assert version.source == {"kind": "generated", "generator": "arithmetic", "parameters": SMALL}


def test_generating_from_the_page(people: Any, client_of: Clients) -> None:
    posted = {"how": "generate", "generator": "arithmetic", "name": "sums", "num": "50", "heldout": "on"}
    page = client_of(people.member).post("/datasets/new/", posted, follow=True)
    assert "sums@1 holds 50 rows." in page.content.decode()
    assert DatasetVersion.objects.get().source["parameters"]["heldout"] is True


@pytest.mark.parametrize(
    ("posted", "sentence"),
    [
        ({"num": "0"}, "Problems must be at least 1"),
        ({"num": "many"}, "Problems must be a whole number"),
        ({"num": "1000000", "terms": "2", "digits": "1"}, "such problems exist"),
        ({"name": "a b"}, "A name starts with"),
        ({"generator": "none"}, "Choose a generator."),
    ],
)
def test_generating_refuses_in_sentences(
    people: Any, client_of: Clients, posted: dict[str, str], sentence: str
) -> None:
    filled = {"how": "generate", "generator": "arithmetic", "name": "sums"} | posted
    refused = client_of(people.member).post("/datasets/new/", filled)
    assert refused.status_code == 400
    assert sentence in refused.content.decode()


def test_a_training_and_a_held_out_set_do_not_overlap(people: Any) -> None:
    training, _ = create_generated(people.team, people.member, "train", "arithmetic", SMALL | {"num": 300})
    heldout, _ = create_generated(
        people.team, people.member, "test", "arithmetic", SMALL | {"heldout": True, "num": 40}
    )
    assert not overlap([training], heldout)


def test_a_version_is_found_by_name_in_its_team_only(people: Any) -> None:
    version, _ = create_version(people.team, people.member, "sums", rows("a"), {})
    assert find(people.team, "sums@1") == version
    assert choices(people.team) == [("sums@1", "sums@1 (1 rows)")]
    for reference in ("sums", "sums@2", "sums@x", "", "@1", "sums@99999999999999999999", "sums@²", "\x00@1"):
        with pytest.raises(ValueError, match="There is no dataset version"):
            find(people.team, reference)
    with pytest.raises(ValueError, match="in this team"):
        find(people.other_team, "sums@1")


def test_a_deleted_dataset_is_gone_until_the_deletion_is_undone(people: Any, client_of: Clients) -> None:
    client = client_of(people.member)
    version, _ = create_version(people.team, people.member, "sums", rows("a"), {})
    path = f"/datasets/{version.dataset_id}/"
    page = client.post(f"{path}delete/", follow=True).content.decode()
    assert "sums was deleted." in page
    assert client.get(path).status_code == 404
    with pytest.raises(ValueError, match="There is no dataset version"):
        find(people.team, "sums@1")
    assert client.post(f"{path}restore/", follow=True).status_code == 200
    assert find(people.team, "sums@1") == version


def test_a_name_taken_meanwhile_keeps_the_deleted_one_away(people: Any, client_of: Clients) -> None:
    client = client_of(people.member)
    version, _ = create_version(people.team, people.member, "sums", rows("a"), {})
    client.post(f"/datasets/{version.dataset_id}/delete/")
    create_version(people.team, people.member, "sums", rows("b"), {})
    page = client.post(f"/datasets/{version.dataset_id}/restore/", follow=True)
    assert "Another dataset is called sums now" in page.content.decode()


def test_rows_are_searched_and_paged(people: Any, client_of: Clients) -> None:
    client = client_of(people.viewer)
    many = [NewRow(f"problem {number}%_", str(number)) for number in range(120)]
    version, _ = create_version(people.team, people.member, "sums", many, {})
    path = f"/datasets/{version.dataset_id}/"
    assert "1–50 of 120" in client.get(path).content.decode()
    assert "101–120 of 120" in client.get(path, {"page": "3"}).content.decode()
    assert "1–1 of 1<" in client.get(path, {"q": "problem 77%"}).content.decode()
    assert "No row holds" in client.get(path, {"q": "\x00"}).content.decode()
    for page in ("0", "99", "x", "-1"):
        assert client.get(path, {"page": page}).status_code == 200


def test_lengths_are_counted(people: Any) -> None:
    version, _ = create_version(people.team, people.member, "sums", rows("a", "bb", "cc", "d" * 100), {})
    bars = version.facts["lengths"]["prompt"]
    assert sum(number for _, _, number in bars) == 4
    assert bars[0] == [0, 4, 3]
    assert bars[-1][0] <= 100 <= bars[-1][1]


def test_the_same_rows_under_another_name_are_pointed_out(people: Any, client_of: Clients) -> None:
    create_version(people.team, people.member, "one", rows("a"), {})
    version, _ = create_version(people.team, people.member, "two", rows("a"), {})
    assert "one@1" in client_of(people.viewer).get(f"/datasets/{version.dataset_id}/").content.decode()


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume")
def test_a_download_is_sent_in_pieces_and_is_what_a_run_reads(people: Any, client_of: Clients, tmp_path: Any) -> None:
    many = [NewRow(f"p{number}", str(number)) for number in range(4500)]
    version, _ = create_version(people.team, people.member, "sums", many, {})
    pieces = list(client_of(people.viewer).get(f"/datasets/{version.dataset_id}/1/rows.jsonl"))
    assert len(pieces) == 3
    assert version.write_jsonl(tmp_path / "rows.jsonl") == 4500
    assert b"".join(pieces) == (tmp_path / "rows.jsonl").read_bytes()
    assert json.loads(b"".join(pieces).splitlines()[-1]) == {
        "id": "4500",
        "prompt": "p4499",
        "answer": "4499",
        "meta": {},
    }


PATHS = ["{pk}/", "{pk}/1/", "{pk}/1/rows/1/", "{pk}/1/rows.jsonl"]


@pytest.mark.parametrize("path", PATHS)
def test_an_outsider_finds_nothing(people: Any, client_of: Clients, path: str) -> None:
    version, _ = create_version(people.team, people.member, "sums", rows("a"), {})
    address = "/datasets/" + path.format(pk=version.dataset_id)
    assert client_of(people.outsider).get(address).status_code == 404
    assert client_of(people.viewer).get(address).status_code == 200


def test_an_outsider_deletes_and_restores_nothing(people: Any, client_of: Clients) -> None:
    version, _ = create_version(people.team, people.member, "additions", rows("a"), {})
    client = client_of(people.outsider)
    assert client.post(f"/datasets/{version.dataset_id}/delete/").status_code == 404
    client_of(people.member).post(f"/datasets/{version.dataset_id}/delete/")
    assert client.post(f"/datasets/{version.dataset_id}/restore/").status_code == 404
    assert "additions" not in client.get("/datasets/").content.decode()


def test_a_viewer_changes_nothing_and_is_told_why(people: Any, client_of: Clients) -> None:
    version, _ = create_version(people.team, people.member, "sums", rows("a"), {})
    client = client_of(people.viewer)
    refusals = [client.get("/datasets/new/"), client.post("/datasets/new/", {"name": "x"})]
    refusals.append(client.post(f"/datasets/{version.dataset_id}/delete/"))
    for refused in refusals:
        assert refused.status_code == 403
        assert "only members and admins may create and change" in refused.content.decode()
    page = client.get("/datasets/").content.decode()
    assert "New dataset" not in page


def test_a_version_that_is_not_there_is_404(people: Any, client_of: Clients) -> None:
    version, _ = create_version(people.team, people.member, "sums", rows("a"), {})
    for path in ("2/", "1/rows/2/", "0/", "2/rows.jsonl"):
        assert client_of(people.member).get(f"/datasets/{version.dataset_id}/{path}").status_code == 404


def test_the_list_asks_as_many_questions_for_many_datasets_as_for_one(people: Any, client_of: Clients) -> None:
    client = client_of(people.viewer)
    create_version(people.team, people.member, "one", rows("a"), {})
    with CaptureQueriesContext(connection) as few:
        client.get("/datasets/")
    for number in range(9):
        create_version(people.team, people.member, f"more{number}", rows("a"), {})
    with CaptureQueriesContext(connection) as many:
        client.get("/datasets/")
    assert len(many) == len(few)

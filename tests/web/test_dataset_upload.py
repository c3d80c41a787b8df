"""From a file to a version: columns guessed, preview, checks with row numbers, nothing half-created."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from vantage.datasets.models import Dataset, DatasetVersion, Row, Upload
from vantage.teams.models import User

Clients = Callable[[User], Client]


@pytest.fixture(autouse=True)
def home(settings: Any, tmp_path: Any) -> None:
    settings.HOME = tmp_path


def jsonl(*rows: object) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def send(client: Client, content: bytes, filename: str = "rows.jsonl", name: str = "sums") -> Any:
    """Upload; the answer is the mapping page, or the form again with a sentence."""
    file = SimpleUploadedFile(filename, content)
    return client.post("/datasets/new/", {"how": "upload", "name": name, "file": file}, follow=True)


def create(client: Client, content: bytes, filename: str = "rows.jsonl", **posted: str) -> Any:
    page = send(client, content, filename)
    return client.post(page.redirect_chain[-1][0], {"create": "all"} | posted, follow=True)


def stored() -> list[tuple[str, str, str]]:
    return list(Row.objects.order_by("number").values_list("prompt", "answer", "solution"))


def test_gsm8k_is_taken_without_the_marks_of_its_calculator(people: Any, client_of: Clients) -> None:
    answer = "Half of 48 is <<48/2=24>>24.\nTogether 72.\n#### 72"
    create(client_of(people.member), jsonl({"question": "How many?", "answer": answer}))
    assert stored() == [("How many?", "72", "Half of 48 is 24.\nTogether 72.")]
    page = client_of(people.member).get(f"/datasets/{Dataset.objects.get().pk}/").content.decode()
    assert "<dt>Leave out calculator marks</dt><dd>yes</dd>" in page


def test_the_marks_of_a_calculator_are_kept_when_asked(people: Any, client_of: Clients) -> None:
    answer = "Half of 48 is <<48/2=24>>24.\n#### 24"
    create(client_of(people.member), jsonl({"question": "How many?", "answer": answer}), drop_calculator="off")
    assert stored() == [("How many?", "24", "Half of 48 is <<48/2=24>>24.")]


def test_mawps_keeps_its_floats_as_written(people: Any, client_of: Clients) -> None:
    create(client_of(people.member), b'{"input":"7 and 7?","target":14.0}\n{"input":"1 and 1?","target":2}\n')
    assert stored() == [("7 and 7?", "14.0", ""), ("1 and 1?", "2", "")]


def test_svamp_joins_its_two_columns(people: Any, client_of: Clients) -> None:
    create(client_of(people.member), jsonl({"Answer": 145.0, "Question": "How big?", "Body": "Bananas.", "ID": "c-1"}))
    assert stored() == [("Bananas. How big?", "145.0", "")]
    assert Row.objects.get().meta == {"ID": "c-1"}


def test_nested_columns_get_dotted_names(people: Any, client_of: Clients) -> None:
    create(client_of(people.member), jsonl({"data": {"question": "Q?", "extra": {"answer": "A"}}}))
    assert stored() == [("Q?", "A", "")]


@pytest.mark.parametrize(
    ("filename", "content"),
    [
        ("rows.json", b'\n[ {"problem": "a,b", "answer": "1"},\n {"problem": "c\\"d", "answer": 2.50} ]'),
        ("rows.csv", b'problem,answer\r\n"a,b",1\r\n"c""d",2.50\r\n'),
        ("rows.csv", b'\xef\xbb\xbfproblem;answer\n"a,b";1\n\n"c""d";2.50\n'),
        ("rows.tsv", b'problem\tanswer\na,b\t1\n"c""d"\t2.50\n'),
        ("rows.jsonl", b'\xef\xbb\xbf{"problem": "a,b", "answer": "1"}\n\n{"problem": "c\\"d", "answer": 2.50}'),
    ],
)
def test_each_format_gives_the_same_rows(people: Any, client_of: Clients, filename: str, content: bytes) -> None:
    create(client_of(people.member), content, filename)
    assert stored() == [("a,b", "1", ""), ('c"d', "2.50", "")]


def test_a_long_json_array_is_read_across_its_pieces(people: Any, client_of: Clients) -> None:
    rows = [{"prompt": f"{number} " + "x" * 900, "answer": number} for number in range(3000)]
    create(client_of(people.member), json.dumps(rows).encode(), "rows.json")
    assert Row.objects.count() == 3000
    assert Row.objects.get(number=3000).answer == "2999"


def test_the_preview_shows_prompts_as_they_will_read(people: Any, client_of: Clients) -> None:
    page = send(client_of(people.member), jsonl({"Body": "Six <b>apples</b>.", "Question": "How many?", "Answer": 6}))
    assert "Six &lt;b&gt;apples&lt;/b&gt;. How many?" in page.content.decode()


def test_other_columns_can_be_chosen_and_are_previewed(people: Any, client_of: Clients) -> None:
    client = client_of(people.member)
    page = send(client, jsonl({"prompt": "no", "text": "yes", "answer": "1"}))
    preview = client.post(page.redirect_chain[-1][0], {"prompt": "text"})
    assert '<pre class="text">yes</pre>' in preview.content.decode()
    client.post(page.redirect_chain[-1][0], {"prompt": "text", "create": "all"})
    assert stored() == [("yes", "1", "")]


@pytest.mark.parametrize(
    ("filename", "content", "sentence"),
    [
        ("rows.jsonl", b"", "The file is empty"),
        ("rows.jsonl", b" \n\n", "The file is empty"),
        ("rows.csv", b"a,a\n1,2\n", "Two columns are called “a”"),
        ("rows.parquet", b"PAR1....", "Parquet"),
        ("rows.gz", b"\x1f\x8b....", "gzip"),
        ("rows.xlsx", b"PK\x03\x04....", "save it as CSV"),
        ("rows.jsonl", '{"a": 1}'.encode("utf-16"), "UTF-16"),
        ("rows.csv", b"prompt,answer\ncaf\xe9,1\n", "line 2"),
        ("rows.jsonl", b"one\ntwo\n", "line 1"),
        ("rows.json", b"[]", "The file holds no rows."),
        ("rows.csv", b"prompt,answer\n", "The file holds no rows."),
        ("rows.csv", b"prompt,r\xe9ponse\np,a\n", "The first line is not UTF-8: save the file as UTF-8."),
        ("rows.jsonl", b'{"\\ud83d": "p", "answer": "a"}\n', "line 1 has a column name that is not UTF-8"),
        ("rows.json", b'[{"r\xe9ponse": "a"}]', "item 1 has a column name that is not UTF-8"),
        ("rows.csv", b"x" * (2**24 + 1) + b",answer\np,a\n", "The first line is not valid CSV"),
        ("rows.csv", ",".join(map(str, range(1001))).encode() + b"\n" + b"," * 1000, "The file has 1,001 columns"),
    ],
    ids=lambda value: value[:20] if isinstance(value, bytes) else value,
)
def test_a_file_that_is_not_taken_gets_a_sentence(
    people: Any, client_of: Clients, filename: str, content: bytes, sentence: str, tmp_path: Any
) -> None:
    page = send(client_of(people.member), content, filename)
    assert page.status_code == 400
    assert sentence in page.content.decode()
    assert not Upload.objects.exists()
    assert not any((tmp_path / "uploads").iterdir())


def test_whatever_goes_wrong_leaves_no_file_behind(
    people: Any, client_of: Clients, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    def fail(_: object) -> None:
        raise RecursionError

    monkeypatch.setattr("vantage.datasets.uploads._check_columns", fail)
    with pytest.raises(RecursionError):
        send(client_of(people.member), b'{"prompt": "p"}')
    assert not any((tmp_path / "uploads").iterdir())


GOOD = b'{"prompt": "p", "answer": "a"}\n'


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (GOOD + b'{"prompt": "q"}\n', "Line 2 has no answer."),
        (GOOD + b'{"prompt": "q", "answer": NaN}\n', "Line 2 has no answer."),
        (GOOD + b'{"prompt": "q", "answer": null}\n', "Line 2 has no answer."),
        (GOOD + b'{"prompt": " ", "answer": "a"}\n', "Line 2 has an empty prompt."),
        (GOOD + GOOD, "Line 2 repeats line 1."),
        (GOOD + b'{"prompt": "p", "answer": "b"}\n', "Line 2 asks the same as line 1 and answers differently."),
        (GOOD + b'{"prompt": "q", "answer": "\xff"}\n', "Line 2 is not UTF-8 from byte 28 on"),
        (GOOD + b'{"prompt": "q", "answer": ["a"]}\n', "Line 2 has a list in “answer” where text is needed."),
        (GOOD + b'{"prompt": "q", "answer": true}\n', "Line 2 has a true or false in “answer”"),
        (GOOD + b'\n{"prompt": "q", "ans\n', "Line 3 is not valid JSON"),
        (GOOD + b"[1]\n", "Line 2 is no JSON object"),
        (GOOD + b'{"a": ' * 101 + b"1" + b"}" * 101 + b"\n", "Line 2 is nested over 100 levels deep"),
        (GOOD + b'{"a": ' + b"[" * 800 + b"]" * 800 + b"}\n", "Line 2 is nested over 100 levels deep"),
        (GOOD + b"[" * 100_000 + b"\n", "Line 2 is not valid JSON: it is nested too deeply."),
        (GOOD + b'{"prompt": "' + b"x" * 2**24 + b'"}\n', "Line 2 is longer than 16 MiB."),
    ],
)
def test_a_bad_record_is_named_by_its_line(people: Any, client_of: Clients, content: bytes, sentence: str) -> None:
    client = client_of(people.member)
    refused = create(client, content)
    assert refused.status_code == 400
    assert sentence in refused.content.decode()
    assert not Dataset.objects.exists()
    client.post(refused.request["PATH_INFO"], {"create": "without"})
    assert stored() == [("p", "a", "")]
    assert DatasetVersion.objects.get().source["left_out"].values()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"prompt,answer\np,a\nq\n", "Line 3 has 1 fields where the header has 2."),
        (b"prompt,answer\np,a\nq,\xe9\n", "Line 3 is not UTF-8"),
        (b'prompt,answer\np,a\n"two\nlines",\n', "Line 3 has no answer."),
        (b'[{"prompt": "p", "answer": "a"}, {"prompt": "q", ', "Item 2 is not valid JSON"),
        (b'[{"prompt": "p", "answer": "a"}', "Item 2 is not valid JSON"),
        (b'[{"prompt": "p", "answer": "a"}, 3 ]', "Item 2 is no JSON object"),
    ],
)
def test_a_bad_record_of_csv_or_json_is_named_too(
    people: Any, client_of: Clients, content: bytes, sentence: str
) -> None:
    refused = create(client_of(people.member), content, "rows.csv" if content[:1] == b"p" else "rows.json")
    assert sentence in refused.content.decode()


def test_when_no_row_is_left_nothing_is_created(people: Any, client_of: Clients) -> None:
    client = client_of(people.member)
    refused = create(client, jsonl({"prompt": "p", "answer": ""}, {"prompt": "q"}))
    assert "0 rows are left" in refused.content.decode()
    again = client.post(refused.request["PATH_INFO"], {"create": "without"})
    assert "0 rows are left" in again.content.decode()
    assert not Dataset.objects.exists()


def test_a_file_without_an_answer_column_says_so_beside_the_field(people: Any, client_of: Clients) -> None:
    refused = create(client_of(people.member), jsonl({"prompt": "p"}))
    assert "Choose a column of the file." in refused.content.decode()


def test_mixed_answer_types_are_pointed_out_with_their_lines(people: Any, client_of: Clients) -> None:
    rows = [{"prompt": f"p{number}", "answer": number} for number in range(4)]
    refused = create(client_of(people.member), jsonl(*rows, {"prompt": "q", "answer": "five"}, {"prompt": ""}))
    page = refused.content.decode()
    assert "Answers are of mixed types: number in 4 rows, text in 1 (line 5)." in page


def test_columns_that_the_file_does_not_have_are_refused(people: Any, client_of: Clients) -> None:
    refused = create(client_of(people.member), GOOD, prompt="nothing", answer="answer")
    assert "Choose a column of the file." in refused.content.decode()
    same = create(client_of(people.member), GOOD, prompt="prompt", answer="prompt")
    assert "Choose another column than the prompt&#x27;s." in same.content.decode()
    assert not Dataset.objects.exists()


@pytest.mark.parametrize("name", ["", "a b", "../up", "-x", "x" * 65, "<script>"])
def test_a_bad_name_gets_a_sentence(people: Any, client_of: Clients, name: str) -> None:
    refused = send(client_of(people.member), GOOD, name=name)
    assert "A name starts with a letter or digit" in refused.content.decode()


def test_no_file_gets_a_sentence(people: Any, client_of: Clients) -> None:
    refused = client_of(people.member).post("/datasets/new/", {"how": "upload", "name": "sums"})
    assert "Choose a file to upload." in refused.content.decode()


def test_the_file_is_gone_once_it_is_stored_or_discarded(people: Any, client_of: Clients, tmp_path: Any) -> None:
    client = client_of(people.member)
    create(client, GOOD)
    page = send(client, GOOD)
    client.post(page.redirect_chain[-1][0], {"discard": "yes"})
    assert not any((tmp_path / "uploads").iterdir())
    assert not Upload.objects.exists()


def test_a_lost_file_is_told(people: Any, client_of: Clients, tmp_path: Any) -> None:
    client = client_of(people.member)
    page = send(client, GOOD)
    next((tmp_path / "uploads").iterdir()).unlink()
    assert "upload it again" in client.get(page.redirect_chain[-1][0], follow=True).content.decode()


ODD = ["nul \x00 here", "lone \ud83d surrogate", "<script>alert(1)</script>", "a" * 2**20, "\ufdd0 0000", "a\\u0000"]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume")
def test_odd_text_survives_and_is_shown_as_text(people: Any, client_of: Clients, odd: str, tmp_path: Any) -> None:
    client = client_of(people.member)
    create(client, jsonl({"prompt": odd, "answer": odd, "solution": odd, "other": odd}))
    version = DatasetVersion.objects.get()
    row = version.rows.get()
    assert (row.prompt, row.answer, row.solution, row.meta) == (odd, odd, odd, {"other": odd})
    assert version.write_jsonl(tmp_path / "train.jsonl") == 1
    expected = {"id": "1", "prompt": odd, "answer": odd, "solution": odd, "meta": {"other": odd}}
    assert json.loads((tmp_path / "train.jsonl").read_text()) == expected
    downloaded = b"".join(client.get(f"/datasets/{version.dataset_id}/1/rows.jsonl"))
    assert json.loads(downloaded) == expected
    for path in (f"/datasets/{version.dataset_id}/", f"/datasets/{version.dataset_id}/1/rows/1/"):
        page = client.get(path)
        assert page.status_code == 200
        assert b"<script>alert" not in page.content

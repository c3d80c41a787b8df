"""Shipping a journal: each line once, whatever happens, and only by the attempt that holds the run."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from django.utils import timezone
from vantage.runs.folder import AttemptFolder
from vantage.runs.ingest import Fenced, Shipper
from vantage.runs.journal_rows import MOST
from vantage.runs.models import Attempt, Checkpoint, Event, LogTail, MetricRow, Run, Sample
from vantage.runs.states import Outcome, Status

SAMPLE = {
    "prompt_id": "1",
    "group": 0,
    "index": 3,
    "prompt": "1+1=",
    "num_tokens": 2,
    "reward": 1.0,
    "parts": {"numeric": 1.0},
    "correct": True,
    "advantage": 0.5,
    "finish": "stop",
    "version": 7,
}


@pytest.fixture
def attempt(make_run: Callable[..., Run]) -> Attempt:
    run = make_run(status=Status.RUNNING, attempt=1)
    return run.attempts.create(number=1, lease_until=timezone.now())


@pytest.fixture
def folder(tmp_path: Path) -> AttemptFolder:
    (tmp_path / "journal").mkdir()
    return AttemptFolder(tmp_path)


def append(folder: AttemptFolder, name: str, *lines: dict[str, object]) -> None:
    text = "".join(json.dumps({"time": 1.0, "step": line["seq"]} | line) + "\n" for line in lines)
    with folder.journal(name).open("a") as file:
        file.write(text)


def metrics(*seqs: int) -> list[dict[str, object]]:
    return [{"seq": seq, "values": {"reward/mean": seq / 10, "length/mean": seq}} for seq in seqs]


def test_lines_are_stored_and_the_offset_follows(attempt: Attempt, folder: AttemptFolder) -> None:
    append(folder, "metrics", *metrics(1, 2, 3))
    assert Shipper(attempt, folder).ship()
    attempt.refresh_from_db()
    assert attempt.offsets["metrics"] == folder.journal("metrics").stat().st_size
    assert (attempt.seqs["metrics"], attempt.step, MetricRow.objects.count()) == (3, 3, 6)


def test_the_same_lines_shipped_twice_change_nothing(attempt: Attempt, folder: AttemptFolder) -> None:
    append(folder, "metrics", *metrics(1, 2))
    append(folder, "samples", {"seq": 1, "text": "2"} | SAMPLE)
    append(folder, "events", {"seq": 1, "kind": "checkpoint", "data": {"step": 1, "bytes": 9}})
    for _ in range(2):
        assert Shipper(attempt, folder).ship()  # this one knows of no offset
    counts = [model.objects.count() for model in (MetricRow, Sample, Event, Checkpoint)]
    assert counts == [4, 1, 1, 1]
    assert not Shipper(Attempt.objects.get(), folder).ship()


def test_a_half_written_line_waits_for_its_end(attempt: Attempt, folder: AttemptFolder) -> None:
    append(folder, "metrics", *metrics(1))
    whole = json.dumps({"seq": 2, "time": 2.0, "step": 2, "values": {"reward/mean": 0.5}}) + "\n"
    shipper = Shipper(attempt, folder)
    for piece in (whole[:20], whole[20:]):
        with folder.journal("metrics").open("a") as file:
            file.write(piece)
        shipper.ship()
    assert list(MetricRow.objects.filter(key__name="reward/mean").values_list("step", flat=True)) == [1, 2]


def test_what_is_not_finite_is_stored_as_it_is(attempt: Attempt, folder: AttemptFolder) -> None:
    words: dict[str, object] = {"a": "NaN", "b": "Infinity", "c": "-Infinity", "d": 1e308, "e": 10**400}
    append(folder, "metrics", {"seq": 1, "values": words})
    append(folder, "events", {"seq": 1, "kind": "warning", "data": {"reward": math.nan}})
    Shipper(attempt, folder).ship()
    stored = dict(MetricRow.objects.values_list("key__name", "value"))
    assert math.isnan(stored.pop("a"))
    assert stored == {"b": math.inf, "c": -math.inf, "d": 1e308, "e": math.inf}
    assert math.isnan(Event.objects.get().data["reward"])


@pytest.mark.parametrize("text", ["", "\x00", "\ud800 lone", "<script>alert(1)</script>", "x" * 2**20, "\ufdd0abcd"])
def test_text_of_any_content_comes_back_as_it_was(attempt: Attempt, folder: AttemptFolder, text: str) -> None:
    token = {"text": [text[:9]], "logp": [-0.5]}
    append(folder, "samples", {"seq": 1} | SAMPLE | {"text": text, "prompt": text, "tokens": token})
    append(folder, "events", {"seq": 1, "kind": "warning", "data": {"sentence": text, text[:9]: 1}})
    append(folder, "metrics", {"seq": 1, "values": {f"reward/part/{text[:9]}": 1.0}})
    Shipper(attempt, folder).ship()
    sample = Sample.objects.get()
    assert (sample.text, sample.prompt, sample.tokens) == (text, text, token)
    assert Event.objects.get().data == {"sentence": text, text[:9]: 1}


def test_a_line_that_is_no_json_is_passed_over(attempt: Attempt, folder: AttemptFolder) -> None:
    folder.journal("metrics").write_text("garbage\n[1]\n\n")
    append(folder, "metrics", *metrics(1))
    assert Shipper(attempt, folder).ship() and MetricRow.objects.count() == 2
    assert not Shipper(Attempt.objects.get(), folder).ship()


def test_a_fenced_attempt_stores_nothing(attempt: Attempt, folder: AttemptFolder) -> None:
    append(folder, "metrics", *metrics(1))
    Run.objects.update(attempt=2)
    with pytest.raises(Fenced):
        Shipper(attempt, folder).ship()
    assert not MetricRow.objects.exists() and Attempt.objects.get().offsets == {}


def test_an_attempt_that_was_given_up_stores_nothing(attempt: Attempt, folder: AttemptFolder) -> None:
    append(folder, "metrics", *metrics(1))
    Attempt.objects.update(outcome=Outcome.LOST)
    with pytest.raises(Fenced):
        Shipper(attempt, folder).ship()
    assert not MetricRow.objects.exists()


def test_the_end_of_the_log_is_shipped(attempt: Attempt, folder: AttemptFolder) -> None:
    folder.log.write_bytes(b"first\n" + b"x" * 70_000 + b"\nlast \xff\x00\n")
    Shipper(attempt, folder).ship()
    log = LogTail.objects.get()
    assert log.text == "last \ufffd\x00\n" and log.size == folder.log.stat().st_size


def test_the_warm_start_counts_its_own_steps(attempt: Attempt, folder: AttemptFolder) -> None:
    append(folder, "metrics", {"seq": 1, "step": 400, "values": {"warm_start/loss": 1.0}})
    append(folder, "metrics", {"seq": 2, "step": 1, "values": {"reward/mean": 1.0}})
    Shipper(attempt, folder).ship()
    assert Attempt.objects.get().step == 1


NEXT = {"metrics": {"values": {"reward/mean": 1.0}}, "samples": SAMPLE, "events": {"kind": "stage"}}
ODD: list[tuple[str, dict[str, object]]] = [
    ("metrics", {"values": {"m" * 300: 1.0, "\x00" * 300: 2.0, "m" * 201: {}}}),
    ("metrics", {"values": {"reward/mean": 1.0}, "step": -5, "time": "yesterday"}),
    ("samples", {"finish": "\x00stop"}),
    ("samples", {"step": -1}),
    ("samples", {"correct": "perhaps"}),
    ("samples", {"correct": 3, "parts": "none", "tokens": [], "reward": {}}),
    ("samples", {"time": math.nan}),
    ("events", {"kind": "\x00\ud800"}),
    ("events", {"kind": "checkpoint", "data": {"folder": "\x00", "step": -3, "bytes": -1}}),
    ("events", {"kind": "checkpoint", "data": [1]}),
    ("events", {"kind": "resumed", "data": {"from_step": -7}}),
    ("events", {"kind": "phase", "time": 1e300, "seq": 10**30}),
]


@pytest.mark.parametrize(("name", "odd"), ODD)
def test_an_odd_line_is_stored_as_well_as_it_can_be(
    attempt: Attempt, folder: AttemptFolder, name: str, odd: dict[str, object]
) -> None:
    append(folder, name, {"seq": 1} | NEXT[name] | odd, {"seq": 2} | NEXT[name])
    assert Shipper(attempt, folder).ship() and not Event.objects.filter(seq=MOST, kind="warning").exists()
    model: type[MetricRow | Sample | Event] = {"metrics": MetricRow, "samples": Sample, "events": Event}[name]
    stored = model.objects.all()
    assert len(stored) >= 2 and all(row.step >= 0 and 0 <= row.time < 1e11 for row in stored)


def test_what_cannot_be_stored_is_set_aside_with_one_warning_and_the_rest_goes_on(
    attempt: Attempt, folder: AttemptFolder
) -> None:
    deep: object = 0
    for _ in range(600):
        deep = [deep]
    endless = {"seq": 3, "kind": "phase", "data": {"deep": deep}}
    append(folder, "events", *({"seq": seq, "kind": "stage"} for seq in (1, 2)), endless, {"seq": 4, "kind": "stage"})
    append(folder, "events", endless | {"seq": 5})
    append(folder, "metrics", *metrics(1))
    for _ in range(2):
        assert Shipper(attempt, folder).ship()
    told = Event.objects.get(kind="warning")
    assert "number 3 of events.jsonl" in told.data["sentence"]
    assert list(Event.objects.filter(kind="stage").order_by("seq").values_list("seq", flat=True)) == [1, 2, 4]
    assert MetricRow.objects.count() == 2


def test_a_checkpoint_of_many_gigabytes_keeps_its_size(attempt: Attempt, folder: AttemptFolder) -> None:
    append(folder, "events", {"seq": 1, "kind": "checkpoint", "data": {"step": 1, "bytes": 5 * 10**10}})
    Shipper(attempt, folder).ship()
    assert Checkpoint.objects.get().bytes == 5 * 10**10

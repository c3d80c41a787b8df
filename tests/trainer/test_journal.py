import json
from pathlib import Path

import pytest
from vantage_trainer import journal as journal_module
from vantage_trainer.journal import Journal


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_line_is_on_disk_at_once_and_numbered_from_one(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.metrics(1, {"reward/mean": 0.5})
    journal.metrics(2, {"reward/mean": 0.75})
    found = lines(tmp_path / "metrics.jsonl")
    assert [(line["seq"], line["step"]) for line in found] == [(1, 1), (2, 2)]
    assert found[1]["values"] == {"reward/mean": 0.75}


def test_numbers_that_json_lacks_are_written_as_their_names(tmp_path: Path) -> None:
    Journal(tmp_path).metrics(1, {"a": float("nan"), "b": float("inf"), "c": float("-inf")})
    [line] = lines(tmp_path / "metrics.jsonl")
    assert line["values"] == {"a": "NaN", "b": "Infinity", "c": "-Infinity"}


def test_a_half_written_line_is_cut_and_counting_goes_on(tmp_path: Path) -> None:
    Journal(tmp_path).warning(1, "first")
    with (tmp_path / "events.jsonl").open("a") as file:
        file.write('{"seq": 2, "time": 1')
    Journal(tmp_path).warning(2, "second")
    assert [line["seq"] for line in lines(tmp_path / "events.jsonl")] == [1, 2]


def test_any_text_survives_as_ascii(tmp_path: Path) -> None:
    text = "\x00 \ud800 <script> 数 " + "a" * 1_000_000
    Journal(tmp_path).sample(1, {"text": text})
    content = (tmp_path / "samples.jsonl").read_bytes()
    assert content.isascii() and content.count(b"\n") == 1
    assert json.loads(content)["text"] == text


def test_a_phase_is_told_when_it_is_new_and_when_it_lasts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(journal_module.time, "monotonic", lambda: now[0])
    journal = Journal(tmp_path)
    for seconds, name in [(0, "generating"), (1, "updating"), (2, "generating"), (3, "generating"), (9, "generating")]:
        now[0] = seconds
        journal.phase(1, name)
    told = [line["data"]["name"] for line in lines(tmp_path / "events.jsonl")]
    assert told == ["generating", "updating", "generating"]

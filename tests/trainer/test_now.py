"""What the trainer does at this moment stands in one small file, which never needs more disk."""

import json
from pathlib import Path

from vantage_trainer.journal import Journal
from vantage_trainer.now import Now


def test_every_change_of_phase_is_told_whole_in_place(tmp_path: Path) -> None:
    now = Now(tmp_path / "now")
    sizes = set()
    for step, phase in ((9, "checkpointing"), (10, "generating"), (10_000_000, "syncing"), (1, "updating")):
        now.tell(step, phase)
        told = json.loads((tmp_path / "now").read_text())
        assert (told["step"], told["phase"]) == (step, phase) and told["since"] > 0
        sizes.add((tmp_path / "now").stat().st_size)
    assert len(sizes) == 1


def test_since_stays_while_the_phase_does(tmp_path: Path) -> None:
    now = Now(tmp_path / "now")
    now.tell(1, "generating")
    before = (tmp_path / "now").read_text()
    now.tell(1, "generating")
    assert (tmp_path / "now").read_text() == before


def test_the_journal_tells_short_phases_too(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    for name in ("generating", "updating", "generating"):
        journal.phase(3, name)
    assert json.loads((tmp_path / "now").read_text())["phase"] == "generating"
    assert (tmp_path / "journal" / "events.jsonl").read_text().count("generating") == 1

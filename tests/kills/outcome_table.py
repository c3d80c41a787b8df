"""The matrix as a table for people and as JSON for programs."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cell import Outcome

HEAD = "| killed | during | outcome | at step | repeated | back after | went on after |\n" + "| --- " * 7 + "|"
FOOT = """
Repeated: steps of the attempt past the checkpoint that the next one went on from; `w` counts warm-start steps, whose
checkpoints come by the clock. Back: another process stands in the place of the killed one and answers. Went on: what
the trainer did after the kill has reached Postgres. There is no Celery beat to kill: the node agents sweep."""


def row(one: "Outcome") -> str:
    words = one.words if not one.faults else "FAILED: " + " ".join(one.faults)
    step = str(one.step) if one.phase else ""
    return f"| {one.victim} | {one.phase} | {words} | {step} | {one.repeated} | {_s(one.back)} | {_s(one.recovery)} |"


def _s(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.1f} s"


def write_json(path: Path, outcomes: "list[Outcome]", overlaps: list[str]) -> None:
    path.write_text(json.dumps({"cells": [asdict(one) for one in outcomes], "overlaps": overlaps}, indent=1))

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
the trainer did after the kill has reached Postgres. There is no Celery beat to kill: node agents and web sweep."""


def row(one: "Outcome") -> str:
    words = one.words if not one.faults else "FAILED: " + " ".join(one.faults)
    step = "" if one.step is None else str(one.step)
    return f"| {one.victim} | {one.phase} | {words} | {step} | {one.repeated} | {_s(one.back)} | {_s(one.recovery)} |"


def _s(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.1f} s"


def grid(outcomes: "list[Outcome]", phases: list[str]) -> str:
    """Return everything at a glance: seconds until the run went on, and in brackets the repeated steps."""
    cells = {(one.victim, one.phase): one for one in outcomes if one.phase in phases}
    victims = list(dict.fromkeys(victim for victim, _ in cells))
    lines = ["| killed | " + " | ".join(phases) + " |", "| --- " * (len(phases) + 1) + "|"]
    for victim in victims:
        found = (cells.get((victim, phase)) for phase in phases)
        lines.append(f"| {victim} | " + " | ".join(map(_glance, found)) + " |")
    return "\n".join(lines)


def _glance(one: "Outcome | None") -> str:
    if one is None:
        return ""
    if one.faults:
        return "FAILED"
    return _s(one.recovery) + (f" ({one.repeated})" if one.repeated not in ("", "0") else "")


def write_json(path: Path, outcomes: "list[Outcome]", overlaps: list[str]) -> None:
    path.write_text(json.dumps({"cells": [asdict(one) for one in outcomes], "overlaps": overlaps}, indent=1))

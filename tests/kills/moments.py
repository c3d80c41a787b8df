"""The moments of a run at which something is killed, and what its trainer says that it does right now."""

import json
import random
import time
from dataclasses import dataclass
from pathlib import Path

PHASES = {
    "warm start": "warm_start",
    "generation": "generating",
    "update": "updating",
    "weight sync": "syncing",
    "checkpoint": "checkpointing",
    "evaluation": "evaluating",
}
LOOK_SECONDS = 0.001
INTO_SECONDS = {"warm start": 3.0}  # how far into the phase at most, so that not its beginning alone is met
SHORT_SECONDS = 0.03  # the same for all other phases


@dataclass(frozen=True)
class Moment:
    """What the trainer of a run says of itself."""

    attempt: int
    phase: str
    step: int
    since: float


def now(folder: Path) -> Moment | None:
    """Read what the newest attempt's trainer did last; None before it says anything."""
    attempts = [int(path.name) for path in (folder / "attempts").glob("[0-9]*")]
    if not attempts:
        return None
    try:
        told = json.loads((folder / "attempts" / str(max(attempts)) / "now").read_text())
    except (OSError, ValueError):
        return None
    return Moment(max(attempts), told["phase"], told["step"], told["since"])


def wait_for(folder: Path, attempt: int, phase: str, seconds: float) -> bool:
    """Wait until the trainer of this attempt enters the phase and is some way into it; False: it never came."""
    file = folder / "attempts" / str(attempt) / "now"
    deadline = time.monotonic() + seconds
    entered = ""
    while time.monotonic() < deadline:
        line = _read(file)
        if f'"{PHASES[phase]}"' not in line or line == entered:  # once met, the same occurrence is over, or almost
            time.sleep(LOOK_SECONDS)
        else:
            entered = line
            time.sleep(random.uniform(0, INTO_SECONDS.get(phase, SHORT_SECONDS)))
            if f'"{PHASES[phase]}"' in _read(file):
                return True
    return False


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""

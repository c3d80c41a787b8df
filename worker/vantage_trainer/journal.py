"""The journal: what the trainer tells the world, one flushed JSON line at a time, appended and never changed."""

import json
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from pydantic import JsonValue

from vantage_trainer.now import Now

FILES = ("metrics", "samples", "events")
QUIET_SECONDS = 5.0


class Journal:
    """Three files of one attempt; `seq` counts lines from 1 in each, and goes on where an earlier writer stopped."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._files = {name: _Lines(folder / f"{name}.jsonl") for name in FILES}
        self._now = Now(folder.parent / "now")
        self._phase = ""
        self._seen: set[str] = set()
        self._told = 0.0

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        self._write("metrics", step, {"values": {key: standard(value) for key, value in values.items()}})

    def sample(self, step: int, content: dict[str, JsonValue]) -> None:
        self._write("samples", step, content)

    def event(self, step: int, kind: str, data: dict[str, JsonValue]) -> None:
        self._write("events", step, {"kind": kind, "data": data})

    def warning(self, step: int, sentence: str) -> None:
        self.event(step, "warning", {"sentence": sentence})

    def phase(self, step: int, name: str, done: int | None = None, total: int | None = None) -> None:
        """Tell what is going on: at once when it is new to the run, else only what lasts."""
        self._now.tell(step, name)
        now = time.monotonic()
        if name == self._phase and now - self._told < QUIET_SECONDS:
            return
        changed, self._phase, self._told = name != self._phase, name, now
        if changed and name in self._seen:
            return
        self._seen.add(name)
        self.event(step, "phase", {"name": name, "progress": _progress(done, total)})

    def close(self) -> None:
        self._now.close()
        for file in self._files.values():
            file.close()

    def _write(self, file: str, step: int, content: Mapping[str, JsonValue]) -> None:
        self._files[file].append({"time": time.time(), "step": step, **content})


class _Lines:
    """One append-only file of JSON lines, each whole on disk before the next begins."""

    def __init__(self, path: Path) -> None:
        self.seq = _repair(path)
        self._file: IO[str] = path.open("a", encoding="ascii")

    def append(self, content: dict[str, JsonValue]) -> None:
        line = json.dumps({"seq": self.seq + 1, **content}, allow_nan=False)
        self._file.write(line + "\n")
        self._file.flush()
        self.seq += 1

    def close(self) -> None:
        self._file.close()


def standard(value: float) -> float | str:
    """Write a number as standard JSON has it: NaN and the infinities become their names."""
    if math.isnan(value):
        return "NaN"
    return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")


def _repair(path: Path) -> int:
    """Cut a half-written last line and return the number of whole ones."""
    if not path.exists():
        return 0
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole != len(content):
        with path.open("r+b") as file:
            file.truncate(whole)
    return content[:whole].count(b"\n")


def _progress(done: int | None, total: int | None) -> JsonValue:
    return None if done is None else {"done": done, "total": total}

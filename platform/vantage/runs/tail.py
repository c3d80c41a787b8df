"""Read what was appended to a journal file: whole lines only, a half-written last one waits."""

import json
import math
from pathlib import Path

from vantage.stored import Json

MOST = 8 * 2**20  # bytes of one reading; a single longer line is read whole
Line = dict[str, Json]


def appended(path: Path, offset: int) -> tuple[list[Line], int]:
    """Return the whole lines after the offset and the offset after them; what is no JSON object is passed over."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            content = file.read(MOST)
            while content and b"\n" not in content and (more := file.read(MOST)):
                content += more
    except FileNotFoundError:
        return [], offset
    whole = content[: content.rfind(b"\n") + 1]
    lines = [line for text in whole.splitlines() if (line := _line(text)) is not None]
    return lines, offset + len(whole)


def number(value: Json) -> float:
    """Read a metric's value: a number, or the name of one that JSON cannot hold."""
    try:
        return float(value)  # type: ignore[arg-type]
    except OverflowError:
        return math.inf if isinstance(value, int) and value > 0 else -math.inf
    except (TypeError, ValueError):
        return math.nan


def _line(text: bytes) -> Line | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("seq"), int) else None

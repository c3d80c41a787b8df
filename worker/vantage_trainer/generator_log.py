"""Find in the generator's log the line that says why it ended."""

import re
from pathlib import Path

TAIL_BYTES = 65536
REASON = re.compile(r"^(?:\S+\.)?[A-Z]\w*(?:Error|Exception|Exit|Interrupt)\b.*|^Killed\b.*|^Fatal .*|^Out of memory.*")
PREFIX = re.compile(r"^(?:\[rank\d+\]:\s*|\([^)]*pid=\d+\)\s*(?:[A-Z]+\s[\d: -]+\[[^\]]*\]\s*)?)")


def last_words(log: Path) -> str:
    """Return one sentence that quotes the log's last error, or its last line."""
    lines = _lines(log)
    return last_error(log) or (f"The log's last words: {lines[-1][:500]}" if lines else "Its log says nothing.")


def last_error(log: Path) -> str:
    """Return one sentence that quotes the log's last error; nothing where there is none."""
    reasons = [line for line in _lines(log) if REASON.match(line)]
    return f"The log's last words: {reasons[-1][:500]}" if reasons else ""


def _lines(log: Path) -> list[str]:
    try:
        with log.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    return [PREFIX.sub("", line).strip() for line in text.splitlines() if line.strip()]

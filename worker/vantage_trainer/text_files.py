"""Text of a run folder's files; where it is not UTF-8, the line is named."""

from pathlib import Path

from vantage_trainer.failure import Failure


def read_text(path: Path, code: str, errors: str = "strict") -> str:
    """Read UTF-8; a failure carries `code` and names the file and the line."""
    content = path.read_bytes()
    try:
        return content.decode("utf-8", errors).replace("\r\n", "\n")
    except UnicodeDecodeError as fault:
        line = content.count(b"\n", 0, fault.start) + 1
        raise Failure(code, f"Line {line} of {path.name} is not UTF-8: save the file in that encoding.") from None

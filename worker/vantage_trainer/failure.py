"""Faults that end a run, each with a short code for machines and a sentence for people."""

import errno
from collections.abc import Iterator

DISK_IS_FULL = ("No space left on device", "Disk quota exceeded", f"(os error {errno.ENOSPC})")


class Failure(Exception):
    """A fault whose sentence says what happened and what to change."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence


def explained(fault: BaseException) -> tuple[str, str]:
    """Return the code and the sentence of whatever ended the run; the stack trace belongs in the log."""
    if isinstance(fault, Failure):
        return fault.code, fault.sentence
    if any(_is_out_of_disk(one) for one in _chain(fault)):
        return "out_of_disk", (
            "The disk is full: free some space where the node keeps its runs (old runs' checkpoints take most), "
            "then resume the run from its last checkpoint."
        )
    if isinstance(fault, MemoryError) or _is_out_of_memory(fault):
        return "out_of_memory", (
            "Memory ran out: lower tokens per micro-batch, the group size or the response limit, then resume the run."
        )
    if name := NAMED.get(type(fault).__name__):
        return name, str(fault)
    if isinstance(fault, ValueError):
        return "bad_input", str(fault)
    return "internal", f"The trainer met a fault it does not know ({type(fault).__name__}: {fault}); see the log."


NAMED = {"SyncError": "sync_mismatch", "GeneratorDied": "generator_died", "GeneratorUnable": "generator_unable"}


def _chain(fault: BaseException | None) -> Iterator[BaseException]:
    """Yield a fault and those it came from."""
    while fault is not None:
        yield fault
        fault = fault.__cause__ or (None if fault.__suppress_context__ else fault.__context__)


def _is_out_of_disk(fault: BaseException) -> bool:
    """Ask the number, or the text where a library tells it in a class of its own, as safetensors does."""
    if isinstance(fault, OSError) and fault.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    return any(words in str(fault) for words in DISK_IS_FULL)


def _is_out_of_memory(fault: BaseException) -> bool:
    text = str(fault)
    return type(fault).__name__ == "OutOfMemoryError" or "can't allocate memory" in text

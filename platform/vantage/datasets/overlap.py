"""Problems of one version that stand in others too: word for word, but for their marks, or but for their numbers."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from vantage.datasets.models import CHUNK, DatasetVersion, Row
from vantage.datasets.problems import short_digest

MARKS = re.compile(r"[\s.,;:!?'\"“”‘’()\[\]]+")  # not those of arithmetic
NUMBERS = re.compile(r"\d+(?: \d+)*")
SHOWN = 20
FEWEST_WORDS = 4  # below, a problem is its numbers, as a bare sum is


def plain(text: str) -> str:
    """Leave out what a copy often changes: case, spacing, punctuation, forms of a letter."""
    return MARKS.sub(" ", unicodedata.normalize("NFKC", text).casefold()).strip()


def numberless(text: str) -> str:
    """Leave out which numbers a problem has, so that another from the same mould looks the same."""
    words = plain(text)
    moulded = NUMBERS.sub("0", words)
    return moulded if sum(word.isalpha() for word in moulded.split()) >= FEWEST_WORDS else words


FORMS: dict[str, Callable[[str], str]] = {"same": str, "retyped": plain, "renumbered": numberless}


@dataclass(frozen=True)
class Overlap:
    """Numbers of the rows of a version that others hold too, each under the closest likeness it has."""

    same: list[int]
    retyped: list[int]
    renumbered: list[int]

    def __bool__(self) -> bool:
        return bool(self.same or self.retyped or self.renumbered)

    @property
    def sentence(self) -> str:
        """Say how many there are of each, and which are the same."""
        told = [
            f"{len(rows)} {words} ({places(rows)})"
            for rows, words in (
                (self.same, "word for word"),
                (self.retyped, "but for case, spacing and punctuation"),
                (self.renumbered, "but for the numbers"),
            )
            if rows
        ]
        return ", ".join(told)


def places(rows: Sequence[int]) -> str:
    more = f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
    return f"row{'s' if len(rows) > 1 else ''} {', '.join(map(str, rows[:SHOWN]))}{more}"


def overlap(others: Sequence[DatasetVersion], version: DatasetVersion) -> Overlap:
    """Compare a version's prompts with those of others; every row is counted once."""
    found: dict[str, list[int]] = {}
    taken: set[int] = set()
    for form in FORMS:
        known = set().union(*(_digests(one.digest, one.pk, form) for one in others))
        mine = _digests(version.digest, version.pk, form)
        found[form] = [number for digest, numbers in mine.items() if digest in known for number in numbers]
        found[form] = sorted(set(found[form]) - taken)
        taken |= set(found[form])
    return Overlap(**found)


@lru_cache(maxsize=48)
def _digests(content: str, pk: int, form: str) -> dict[bytes, list[int]]:
    """Digests of a version's prompts with the rows that have them; a version never changes, so it is read once."""
    found: dict[bytes, list[int]] = {}
    prompts = Row.objects.filter(version=pk).order_by("number").values_list("number", "prompt")
    for number, prompt in prompts.iterator(chunk_size=CHUNK):
        found.setdefault(short_digest(FORMS[form](prompt)), []).append(number)
    return found

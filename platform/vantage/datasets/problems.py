"""What is wrong with a file, gathered with row numbers while it is read."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from vantage.stored import Json

SHOWN = 20
TITLES = {
    "unreadable": "Records that cannot be read",
    "prompt": "Records without a prompt",
    "answer": "Records without an answer",
    "type": "Records of the wrong type",
    "duplicate": "The same problem again",
    "contradiction": "The same prompt with another answer",
}


@dataclass(frozen=True)
class NewRow:
    """A problem that is not stored yet; `kind` says what the file held as its answer: number or text."""

    prompt: str
    answer: str
    solution: str = ""
    meta: dict[str, Json] = field(default_factory=dict)
    kind: str = "text"


@dataclass(frozen=True)
class Problem:
    kind: str
    place: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.place.capitalize()} {self.sentence}"


@dataclass
class Report:
    """How many rows are good, and what is wrong with the others: totals by kind and the first examples."""

    num_good: int = 0
    totals: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[Problem]] = field(default_factory=dict)
    kinds: dict[str, list[str]] = field(default_factory=dict)
    num_of_kind: Counter[str] = field(default_factory=Counter)

    @property
    def num_bad(self) -> int:
        return self.totals.total()

    @property
    def by_kind(self) -> list[tuple[str, int, list[Problem]]]:
        """(title, total, first examples) of each kind of problem."""
        return [(TITLES[kind], total, self.examples[kind]) for kind, total in self.totals.items()]

    @property
    def warnings(self) -> list[str]:
        """What is worth a look but refuses nothing."""
        if len(self.kinds) < 2:
            return []
        rare = min(self.num_of_kind, key=lambda kind: self.num_of_kind[kind])
        common = max(self.num_of_kind, key=lambda kind: self.num_of_kind[kind])
        if rare == common:
            rare = next(kind for kind in self.num_of_kind if kind != common)
        places = ", ".join(self.kinds[rare][:SHOWN])
        return [
            f"Answers are of mixed types: {common} in {self.num_of_kind[common]} rows, "
            f"{rare} in {self.num_of_kind[rare]} ({places})."
        ]

    def add(self, problem: Problem) -> None:
        self.totals[problem.kind] += 1
        examples = self.examples.setdefault(problem.kind, [])
        if len(examples) < SHOWN:
            examples.append(problem)

    def take(self, row: NewRow, place: str) -> None:
        self.num_good += 1
        self.num_of_kind[row.kind] += 1
        places = self.kinds.setdefault(row.kind, [])
        if len(places) < SHOWN:
            places.append(place)


def good_rows(rows: Iterable[tuple[str, NewRow | Problem]], report: Report) -> Iterator[NewRow]:
    """Let good rows pass, each prompt once, and write the rest into the report."""
    seen: dict[bytes, tuple[str, bytes]] = {}
    for place, row in rows:
        if isinstance(row, Problem):
            report.add(row)
            continue
        prompt, answer = short_digest(row.prompt), short_digest(row.answer)
        if prompt in seen:
            report.add(repeated(place, answer, *seen[prompt]))
            continue
        seen[prompt] = place, answer
        report.take(row, place)
        yield row


def repeated(place: str, answer: bytes, first_place: str, first_answer: bytes) -> Problem:
    if answer == first_answer:
        return Problem("duplicate", place, f"repeats {first_place}.")
    return Problem("contradiction", place, f"asks the same as {first_place} and answers differently.")


def short_digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).digest()

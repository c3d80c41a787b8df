"""Store rows as an immutable version: all or nothing, and the same content only once per dataset."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator

from django.db import connection, transaction
from django.db.models import Max
from django.utils import timezone

from vantage.datasets.models import Dataset, DatasetVersion
from vantage.datasets.problems import NewRow
from vantage.stored import Json, to_jsonb
from vantage.teams.audit import record
from vantage.teams.models import Team, User
from vantage.text import storable

NUM_BARS = 24
COPY = "COPY datasets_row (version_id, number, prompt, answer, solution, meta) FROM STDIN"


class Known(Exception):
    """The content is stored already; undoes the insertion."""

    def __init__(self, version: DatasetVersion) -> None:
        self.version = version


def create_version(
    team: Team, user: User, name: str, rows: Iterable[NewRow], source: dict[str, Json]
) -> tuple[DatasetVersion, bool]:
    """Store rows as the next version of the named dataset: (version, True), or (the one with this content, False)."""
    try:
        with transaction.atomic():
            return insert(team, user, name, rows, source), True
    except Known as known:
        return known.version, False


def insert(team: Team, user: User, name: str, rows: Iterable[NewRow], source: dict[str, Json]) -> DatasetVersion:
    dataset, _ = Dataset.objects.get_or_create(team=team, name=name, deleted=None, defaults={"created_by": user})
    Dataset.objects.select_for_update().get(pk=dataset.pk)  # versions of one dataset are numbered one at a time
    newest = dataset.versions.aggregate(newest=Max("number"))["newest"] or 0
    version = dataset.versions.create(number=newest + 1, digest="", num_rows=0, created_by=user)
    copied = Copied()
    with connection.cursor() as cursor, cursor.copy(COPY) as copy:
        for stored in copied.counting(rows):
            copy.write_row((version.pk, *stored))
    if not copied.num_rows:
        raise ValueError("0 rows are left: there is nothing to train on.")
    known = dataset.versions.filter(digest=copied.digest).first()
    if known is not None:
        raise Known(known)
    version.digest, version.num_rows, version.facts = copied.digest, copied.num_rows, copied.facts
    version.source = source  # only now: it may tell what was left out while the rows passed by
    version.save(update_fields=["digest", "num_rows", "facts", "source"])
    record(team, user, "created dataset version", str(version), rows=version.num_rows)
    return version


class Copied:
    """What is learnt of rows while they pass by: number, digest, lengths."""

    def __init__(self) -> None:
        self.num_rows = 0
        self.hash = hashlib.sha256()
        self.lengths: dict[str, Counter[int]] = {"prompt": Counter(), "answer": Counter(), "solution": Counter()}

    @property
    def digest(self) -> str:
        return self.hash.hexdigest()

    @property
    def facts(self) -> dict[str, Json]:
        bars: dict[str, Json] = {part: histogram(lengths) for part, lengths in self.lengths.items() if any(lengths)}
        return {"lengths": bars}

    def counting(self, rows: Iterable[NewRow]) -> Iterator[tuple[int, str, str, str, str]]:
        for row in rows:
            self.num_rows += 1
            self.hash.update(canonical(row))
            for part, lengths in self.lengths.items():
                lengths[len(getattr(row, part))] += 1
            texts = storable(row.prompt), storable(row.answer), storable(row.solution)
            yield (self.num_rows, *texts, json.dumps(to_jsonb(row.meta)))


def canonical(row: NewRow) -> bytes:
    """What of a row counts as its content."""
    return json.dumps([row.prompt, row.answer, row.solution, row.meta], sort_keys=True).encode() + b"\n"


def histogram(lengths: Counter[int]) -> list[Json]:
    """Count lengths in at most 24 bars of equal width: [from, to, number]."""
    width = max(1, -(-(max(lengths) + 1) // NUM_BARS))
    bars: Counter[int] = Counter()
    for length, number in lengths.items():
        bars[length // width] += number
    return [[bar * width, bar * width + width - 1, bars[bar]] for bar in range(min(bars), max(bars) + 1)]


def delete(dataset: Dataset, user: User) -> None:
    """Hide a dataset; runs that used it keep their copy, and `restore` brings it back."""
    if Dataset.objects.filter(pk=dataset.pk, deleted=None).update(deleted=timezone.now()):
        record(dataset.team, user, "deleted dataset", dataset.name)


def restore(dataset: Dataset, user: User) -> None:
    if Dataset.objects.filter(team=dataset.team, name=dataset.name, deleted=None).exists():
        raise ValueError(f"Another dataset is called {dataset.name} now: delete that one first.")
    if Dataset.objects.filter(pk=dataset.pk).exclude(deleted=None).update(deleted=None):
        record(dataset.team, user, "restored dataset", dataset.name)

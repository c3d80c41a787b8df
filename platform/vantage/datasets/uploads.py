"""From an uploaded file to a version: keep the file, try the columns, check every record, store."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from itertools import islice
from pathlib import Path

from django.conf import settings
from django.core.files import File
from django.db.models import Q
from django.utils import timezone

from vantage.datasets.columns import SAMPLE, Columns, names, row
from vantage.datasets.models import DatasetVersion, Upload
from vantage.datasets.problems import NewRow, Problem, Report, good_rows
from vantage.datasets.reading import Record, file_format, records
from vantage.datasets.store import create_version
from vantage.stored import Json
from vantage.teams.models import Team, User
from vantage.text import storable

KEPT = timedelta(days=1)
KEPT_FOR_JOB = timedelta(days=30)
PARTIAL = ".partial"  # ends the name of a file that is being written
NUM_PREVIEWED = 5
MOST_COLUMNS = 1000
AT_ONCE = 10 * 2**20  # bytes of a file that is checked and stored while a person waits; a larger one is a job


def keep(team: Team, user: User, name: str, file: File) -> Upload:
    """Store the file, in pieces, until its columns are mapped. ValueError says why it is not taken."""
    forget_old()
    filename = storable(Path(file.name or "file").name)[:255]
    upload = Upload(team=team, created_by=user, name=name, filename=filename)
    upload.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    partial = upload.path.with_suffix(PARTIAL)
    try:
        with partial.open("wb") as kept:
            for piece in file.chunks():
                kept.write(piece)
        partial.replace(upload.path)
        upload.format = file_format(upload.path, filename)
        _check_columns(sample(upload))
        upload.save(force_insert=True)
    except BaseException:  # whatever it is: no file stays that nothing points to
        partial.unlink(missing_ok=True)
        upload.path.unlink(missing_ok=True)
        raise
    return upload


def _check_columns(first: list[Record]) -> None:
    """Refuse a file of which no record can be read: there would be no column to choose; nor can one among thousands."""
    if not first:
        raise ValueError("The file holds no rows. Choose one with at least one row.")
    known = names(first)
    if len(known) > MOST_COLUMNS:
        raise ValueError(f"The file has {len(known):,} columns: leave out all but {MOST_COLUMNS:,}.")
    if not known:
        raise ValueError(f"No record of this file can be read: {first[0].place} {first[0].fault}")


def is_large(upload: Upload) -> bool:
    """Whether its import is a job."""
    return upload.path.stat().st_size > AT_ONCE


def forget(upload: Upload) -> None:
    upload.path.unlink(missing_ok=True)
    Upload.objects.filter(pk=upload.pk).delete()


def forget_old() -> None:
    """Drop what nobody came back for, and what a killed process left half-written."""
    now = timezone.now()
    abandoned = Q(created__lt=now - KEPT, importing=False) | Q(created__lt=now - KEPT_FOR_JOB)
    for upload in Upload.objects.filter(abandoned):
        forget(upload)
    for partial in (Path(settings.HOME) / "uploads").glob(f"*{PARTIAL}"):
        if partial.stat().st_mtime < (now - KEPT).timestamp():
            partial.unlink(missing_ok=True)


def sample(upload: Upload) -> list[Record]:
    """The first records."""
    return list(islice(records(upload.path, upload.format), SAMPLE))


def rows(upload: Upload, columns: Columns) -> Iterator[tuple[str, NewRow | Problem]]:
    return rows_of(records(upload.path, upload.format), columns)


def rows_of(read: Iterable[Record], columns: Columns) -> Iterator[tuple[str, NewRow | Problem]]:
    """Make rows of records, or say what is wrong with each."""
    for record in read:
        yield record.place, row(record, columns)


def preview(upload: Upload, columns: Columns) -> list[tuple[str, NewRow | Problem]]:
    """The first rows exactly as a run would read them."""
    return list(islice(rows(upload, columns), NUM_PREVIEWED))


def examine(upload: Upload, columns: Columns) -> Report:
    """Read the whole file and say what is wrong with it; nothing is stored."""
    return examine_rows(rows(upload, columns))


def examine_rows(read: Iterable[tuple[str, NewRow | Problem]]) -> Report:
    report = Report()
    for _ in good_rows(read, report):
        pass
    return report


def store(upload: Upload, columns: Columns, user: User) -> tuple[DatasetVersion, bool]:
    """Store the good rows as a version and forget the file; (version, False) where this content is known."""
    source = {"kind": "upload", "filename": upload.filename}
    made = store_rows(upload.team, user, upload.name, rows(upload, columns), columns, source)
    forget(upload)
    return made


def store_rows(
    team: Team,
    user: User,
    name: str,
    read: Iterable[tuple[str, NewRow | Problem]],
    columns: Columns,
    source: Mapping[str, Json],
) -> tuple[DatasetVersion, bool]:
    """Store the good ones as a version, whole or not at all; `source` says where they come from."""
    report = Report()
    left_out: dict[str, Json] = {}
    told: dict[str, Json] = {**source, "columns": columns.model_dump(), "left_out": left_out}

    def counted() -> Iterator[NewRow]:
        yield from good_rows(read, report)
        left_out.update(report.totals)

    return create_version(team, user, name, counted(), told)

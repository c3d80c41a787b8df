"""From an uploaded file to a version: keep the file, try the columns, check every record, store."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from pathlib import Path

from django.core.files import File
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
NUM_PREVIEWED = 5
MOST_COLUMNS = 1000


def keep(team: Team, user: User, name: str, file: File) -> Upload:
    """Store the file, in pieces, until its columns are mapped. ValueError says why it is not taken."""
    forget_old()
    filename = storable(Path(file.name or "file").name)[:255]
    upload = Upload(team=team, created_by=user, name=name, filename=filename)
    upload.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with upload.path.open("wb") as kept:
            for piece in file.chunks():
                kept.write(piece)
        upload.format = file_format(upload.path, filename)
        _check_columns(sample(upload))
        upload.save(force_insert=True)
    except BaseException:  # whatever it is: no file stays that nothing points to
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


def forget(upload: Upload) -> None:
    upload.path.unlink(missing_ok=True)
    Upload.objects.filter(pk=upload.pk).delete()


def forget_old() -> None:
    for upload in Upload.objects.filter(created__lt=timezone.now() - KEPT):
        forget(upload)


def sample(upload: Upload) -> list[Record]:
    """The first records."""
    return list(islice(records(upload.path, upload.format), SAMPLE))


def rows(upload: Upload, columns: Columns) -> Iterator[tuple[str, NewRow | Problem]]:
    for record in records(upload.path, upload.format):
        yield record.place, row(record, columns)


def preview(upload: Upload, columns: Columns) -> list[tuple[str, NewRow | Problem]]:
    """The first rows exactly as a run would read them."""
    return list(islice(rows(upload, columns), NUM_PREVIEWED))


def examine(upload: Upload, columns: Columns) -> Report:
    """Read the whole file and say what is wrong with it; nothing is stored."""
    report = Report()
    for _ in good_rows(rows(upload, columns), report):
        pass
    return report


def store(upload: Upload, columns: Columns, user: User) -> tuple[DatasetVersion, bool]:
    """Store the good rows as a version and forget the file; (version, False) where this content is known."""
    report = Report()
    source: dict[str, Json] = {"kind": "upload", "filename": upload.filename, "columns": columns.model_dump()}
    left_out: dict[str, Json] = {}
    source["left_out"] = left_out
    good = good_rows(rows(upload, columns), report)

    def counted() -> Iterator[NewRow]:
        yield from good
        left_out.update(report.totals)

    made = create_version(upload.team, user, upload.name, counted(), source)
    forget(upload)
    return made

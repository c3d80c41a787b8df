"""The process of an import: check a file record by record and store it as a version, whole or not at all.

`python -m vantage.runs.importing RUN_FOLDER --attempt N`. It runs no one else's code and writes to Postgres itself, so
unlike a trainer it is given the way there. Killed at any moment, it leaves no rows behind and can be done again.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import django
from vantage_trainer import attempt
from vantage_trainer.attempt import FAILED, SUCCEEDED, Attempt, Told
from vantage_trainer.failure import Failure
from vantage_trainer.jobspec import ImportSpec, JobFile
from vantage_trainer.journal import Journal
from vantage_trainer.stopping import Stop

LOOK_EVERY = 500  # records between two looks at the wish to stop


def main() -> int:
    folder, number = attempt.arguments("vantage.runs.importing", "Import a dataset.")
    attempt.set_threads()
    django.setup()
    return attempt.live(folder, number, _work, nothing_done="The import was stopped: nothing of it was stored.")


def _work(ours: Attempt) -> Told:
    from django.db import InterfaceError, OperationalError

    spec = JobFile.model_validate_json((ours.folder / "job.json").read_text(encoding="ascii")).spec
    assert isinstance(spec, ImportSpec)
    try:
        return _imported(ours, spec, ours.open_journal())
    except (OperationalError, InterfaceError) as fault:
        sentence = "Postgres went away amid the import, so nothing was stored; the job starts again."
        raise Failure("postgres_away", sentence) from fault


def _imported(ours: Attempt, spec: ImportSpec, journal: Journal) -> Told:
    from vantage.datasets.uploads import examine_rows, store_rows
    from vantage.runs.import_report import report_of
    from vantage.runs.import_sources import source_of
    from vantage.runs.models import Run

    job = Run.objects.select_related("team", "created_by").get(pk=int(ours.folder.name))
    if job.created_by is None:
        raise Failure("no_owner", "Who started this import is no longer known: start it again.")
    journal.phase(0, "loading")
    source = source_of(spec, ours.folder)
    watched = partial(Watched, stop=ours.stop, journal=journal)
    report = None
    if not spec.leave_out:
        report = examine_rows(source.rows(watched("checking", total=source.num_lines).over))
        if report.num_bad or not report.num_good:
            journal.event(0, "result", report_of(report))
            return Told(FAILED, "bad_records", _refusal(report.num_good, report.num_bad))
    total = report.num_good if report else source.num_lines
    rows = source.rows(watched("storing", total=total).over)
    version, is_new = store_rows(job.team, job.created_by, spec.name, rows, source.columns, source.told)
    told = {"dataset": version.dataset_id, "number": version.number, "rows": version.num_rows, "is_new": is_new}
    journal.event(0, "result", {**told, "left_out": version.source.get("left_out", {})})
    ours.let_go = lambda failed: source.forget()
    holds = f"{version} holds {version.num_rows:,} rows." if is_new else f"This content is {version} already."
    return Told(SUCCEEDED, "finished", holds)


def _refusal(num_good: int, num_bad: int) -> str:
    if not num_good:
        return "No row is left: choose other columns, or correct the file and upload it again."
    return (
        f"{num_bad:,} record{'' if num_bad == 1 else 's'} cannot be used and {num_good:,} can, so nothing was stored: "
        "correct the file, choose other columns, or leave these out."
    )


@dataclass(frozen=True)
class Watched:
    """Tell how far a pass over a file is, and end it when that is asked."""

    phase: str
    stop: Stop
    journal: Journal
    total: int | None = None

    def over(self, read: Iterator) -> Iterator:
        for done, item in enumerate(read):
            if done % LOOK_EVERY == 0:
                self.stop.check()
                self.journal.phase(0, self.phase, done, self.total)
            yield item


if __name__ == "__main__":
    attempt.leave(main())

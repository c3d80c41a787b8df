"""Ship an attempt's journal into Postgres: all of it, each line once, and only for the attempt that holds the run."""

from django.db import transaction

from vantage.runs.announce import announce
from vantage.runs.folder import JOURNALS, AttemptFolder
from vantage.runs.journal_rows import Target, count, store, training_step
from vantage.runs.models import Attempt, LogTail
from vantage.runs.tail import Line, appended

LOG_TAIL = 64 * 1024  # bytes of trainer.log that pages can show


class Fenced(Exception):
    """The attempt is over or a later one holds the run: nothing was stored."""


class Shipper:
    """Moves the journal of one attempt; what is stored and how far is one transaction.

    `holder` is the attempt that holds the run, where it stores what an earlier one wrote unseen.
    """

    def __init__(self, attempt: Attempt, folder: AttemptFolder, holder: Attempt | None = None) -> None:
        self.holder = (holder or attempt).pk
        self.target = Target(attempt.run_id, attempt.run.team_id, attempt.number, attempt.pk)
        self.folder = folder
        self.offsets = {name: attempt.offsets.get(name, 0) for name in JOURNALS}
        self.log_size = attempt.seqs.get("log", 0)

    def ship(self) -> bool:
        """Store what was appended since the last time; True: there was something. Raises Fenced."""
        read = {name: appended(self.folder.journal(name), self.offsets[name]) for name in JOURNALS}
        log_size = self.folder.log.stat().st_size if self.folder.log.exists() else 0
        offsets = {name: offset for name, (_, offset) in read.items()}
        if offsets == self.offsets and log_size == self.log_size:
            return False
        with transaction.atomic():
            self._advance(offsets, {name: lines for name, (lines, _) in read.items()}, log_size)
            for name, (lines, _) in read.items():
                store(self.target, name, lines)
            _store_log(self.target.pk, self.folder, log_size)
        self.offsets, self.log_size = offsets, log_size
        announce(self.target.run, self.target.team)
        return True

    def _advance(self, offsets: dict[str, int], lines: dict[str, list[Line]], log_size: int) -> None:
        """Move the stored offsets on first: the row's lock keeps a second writer out, a fenced one changes nothing."""
        locked = Attempt.objects.select_for_update(of=("self",))
        if not locked.newest().filter(pk=self.holder).first():
            raise Fenced
        attempt = locked.get(pk=self.target.pk)
        for name, new in lines.items():
            attempt.seqs[name] = max([attempt.seqs.get(name, 0), *(count(line["seq"]) for line in new)])
        attempt.step = max([attempt.step, *map(training_step, lines["metrics"])])
        attempt.seqs["log"] = log_size
        attempt.offsets = offsets
        attempt.save(update_fields=["seqs", "step", "offsets"])


def _store_log(attempt: int, folder: AttemptFolder, size: int) -> None:
    if size:
        tail = {"text": log_tail(folder), "size": size}
        LogTail.objects.update_or_create(attempt_id=attempt, defaults=tail)


def log_tail(folder: AttemptFolder, most: int = LOG_TAIL) -> str:
    """Return the end of trainer.log, cut at a line's beginning."""
    if not folder.log.exists():
        return ""
    with folder.log.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - most))
        content = file.read(most)
    if size > most:
        content = content[content.find(b"\n") + 1 :]
    return content.decode("utf-8", errors="replace")

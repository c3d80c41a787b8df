"""What people do to runs that are there: delete and bring back, tag, note, rename."""

from collections.abc import Iterable

from django.utils import timezone

from vantage.runs.models import Attempt, Run
from vantage.runs.querysets import RunQuerySet
from vantage.teams.audit import record
from vantage.teams.models import User
from vantage.text import showable

MOST_TAGS = 20
LONGEST_TAG = 50
LONGEST_NAME = 200


def delete(runs: RunQuerySet, user: User) -> list[int]:
    """Take runs out of sight; `restore` brings them back. A run at work is stopped first, by its owner."""
    return _set_deleted(list(runs), user, "deleted")


def restore(runs: RunQuerySet, user: User) -> list[int]:
    return _set_deleted(list(runs), user, "restored")


def tag(runs: RunQuerySet, tags: Iterable[str], user: User) -> int:
    """Add tags to each of the runs."""
    changed = 0
    for run in runs:
        wanted = clean_tags([*run.tags, *tags])
        changed += Run.objects.filter(pk=run.pk, tags=run.tags).exclude(tags=wanted).update(tags=wanted)
    return changed


def clean_name(name: str) -> str:
    """Return the name on one line, in characters that can be stored."""
    return " ".join(showable(name).split())[:LONGEST_NAME]


def clean_tags(tags: Iterable[str]) -> list[str]:
    """Return the tags once each, trimmed; too long ones are cut, too many left out."""
    trimmed = (" ".join(showable(tag).split())[:LONGEST_TAG] for tag in tags)
    return list(dict.fromkeys(tag for tag in trimmed if tag))[:MOST_TAGS]


def _set_deleted(runs: list[Run], user: User, verb: str) -> list[int]:
    moment = timezone.now() if verb == "deleted" else None
    Run.objects.filter(pk__in=[run.pk for run in runs]).update(deleted=moment)
    if moment:
        Attempt.objects.filter(run__in=runs).abandon()
    for run in runs:
        record(run.team, user, f"{verb} run", str(run))
    return [run.pk for run in runs]

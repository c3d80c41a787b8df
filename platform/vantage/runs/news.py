"""What a stream tells about a run: its status and how far its journal is stored. The page then reads what is new."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from django.contrib.sessions.models import Session
from django.db.models import F, Q
from django.utils import timezone

from vantage.runs.models import Attempt, Run
from vantage.runs.states import ACTIVE, Status
from vantage.teams.models import Membership

WATCHED = (*ACTIVE, Status.QUEUED, Status.LOST)  # states that are left without a person's doing


@dataclass(frozen=True)
class News:
    run: int
    team: int
    status: str
    cursor: dict[str, int] = field(hash=False)

    def as_json(self) -> dict[str, object]:
        return {"run": self.run, "status": self.status, "cursor": self.cursor}


def news_of(runs: Iterable[int]) -> list[News]:
    return _read(Run.objects.filter(pk__in=list(runs)).values("pk", "team", "status", "attempt"))


def news_since(since: datetime, known: Iterable[int]) -> list[News]:
    """Return how all runs stand that are under way, that ended since then, or that were known to be under way."""
    lately = Q(status__in=WATCHED) | Q(ended__gte=since) | Q(pk__in=list(known))
    return _read(Run.objects.filter(lately).values("pk", "team", "status", "attempt"))


def _read(chosen: Iterable[dict]) -> list[News]:
    runs = list(chosen)
    newest = Attempt.objects.filter(run__in=[run["pk"] for run in runs], number=F("run__attempt"))
    seqs = dict(newest.values_list("run", "seqs"))
    return [
        News(run["pk"], run["team"], run["status"], {"attempt": run["attempt"]} | seqs.get(run["pk"], {}))
        for run in runs
    ]


def admitted(readers: Iterable[tuple[int, str]]) -> dict[tuple[int, str], set[int]]:
    """Return the teams of each (user, session) that still may read; who logged out or was shut out is missing."""
    asked = list(readers)
    users = {user for user, _ in asked}
    living = Session.objects.filter(session_key__in=[key for _, key in asked], expire_date__gt=timezone.now())
    keys = set(living.values_list("session_key", flat=True))
    teams: dict[int, set[int]] = {}
    for user, team in Membership.objects.filter(user__in=users, user__is_active=True).values_list("user", "team"):
        teams.setdefault(user, set()).add(team)
    return {(user, key): teams[user] for user, key in asked if key in keys and user in teams}

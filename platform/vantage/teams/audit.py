"""The audit trail: who did what, when."""

from vantage.teams.models import AuditEntry, Team, User


def record(team: Team, actor: User, verb: str, subject: str, **detail: str | int | float | bool | None) -> None:
    """Write one entry that reads as a sentence: record(team, user, "uploaded dataset", "sums@1", rows=4096)."""
    AuditEntry.objects.create(
        team=team, actor=actor, actor_name=actor.username, verb=verb, subject=subject[:300], detail=detail
    )

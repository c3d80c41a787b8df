"""Who may do what: outsiders get 404, and inside a team a forbidden verb gets 403 with a sentence.

@require_role(Role.MEMBER)         in the reader's current team, for lists and for making new things
run = found(Run, request, pk=pk)        404 unless it belongs to one of the reader's teams
may(request, run.team, Role.MEMBER) 403 with a sentence unless their role there allows it
"""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from vantage.teams.models import Membership, Role, Team, User

P = ParamSpec("P")
Row = TypeVar("Row", bound=models.Model)
View = Callable[Concatenate[HttpRequest, P], HttpResponse]
ALLOWED: dict[str, str] = {
    Role.VIEWER: "read",
    Role.MEMBER: "create and change runs, datasets and algorithms",
    Role.ADMIN: "manage the team",
}
RANK = {role: rank for rank, role in enumerate(ALLOWED)}


def reader(request: HttpRequest) -> User:
    """The person who asks; every view but the login pages has one."""
    assert isinstance(request.user, User)
    return request.user


def memberships(request: HttpRequest) -> list[Membership]:
    """The reader's memberships, read once per request."""
    known = getattr(request, "_memberships", None)
    if known is None:
        known = list(Membership.objects.filter(user=reader(request)).select_related("team").order_by("pk"))
        request._memberships = known  # type: ignore[attr-defined]
    return known


def current_membership(request: HttpRequest) -> Membership:
    """The membership in the team chosen for this session, or in the first one."""
    mine = memberships(request)
    if not mine:
        raise PermissionDenied("You belong to no team: ask a team's admin to add you.")
    chosen = request.session.get("team")
    return next((membership for membership in mine if membership.team_id == chosen), mine[0])


def current_team(request: HttpRequest) -> Team:
    return current_membership(request).team


def may(request: HttpRequest, team: Team, role: str) -> None:
    """Refuse with a sentence unless the reader holds at least this role in the team."""
    held = next((mine.role for mine in memberships(request) if mine.team_id == team.pk), None)
    if held is None or RANK[held] < RANK[role]:
        raise PermissionDenied(
            f"Your role in {team.name} is {held or 'none'}: only {who(role)} may {ALLOWED[role]}. "
            "Ask an admin of the team to change your role."
        )


def who(role: str) -> str:
    return " and ".join(f"{allowed}s" for allowed in Role.values if RANK[allowed] >= RANK[role])


def can(request: HttpRequest, team: Team, role: str) -> bool:
    """Whether `may` would let the reader pass; pages hide what would be refused."""
    held = next((mine.role for mine in memberships(request) if mine.team_id == team.pk), None)
    return held is not None and RANK[held] >= RANK[role]


def require_role(role: str) -> Callable[[View[P]], View[P]]:
    """Let only those with at least this role in their current team call the view."""

    def decorate(view: View[P]) -> View[P]:
        @wraps(view)
        def guarded(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            may(request, current_team(request), role)
            return view(request, *args, **kwargs)

        return guarded

    return decorate


def found(model: type[Row], request: HttpRequest, **which: object) -> Row:
    """The one row that the reader may see, or 404. The model's manager has `visible_to`."""
    return get_object_or_404(model.objects.visible_to(reader(request)), **which)  # type: ignore[attr-defined]

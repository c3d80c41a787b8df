"""What every page knows about the reader's team; evaluated only where a template asks."""

from django.http import HttpRequest

from vantage.teams.access import memberships


def team(request: HttpRequest) -> dict[str, object]:
    """team: the current one or None; my_teams: all of the reader's; my_role: viewer, member, admin or nothing."""
    if not getattr(request, "user", None) or not request.user.is_authenticated:
        return {}
    mine = memberships(request)
    chosen = request.session.get("team")
    current = next((one for one in mine if one.team_id == chosen), mine[0] if mine else None)
    return {
        "team": current.team if current else None,
        "my_role": current.role if current else "",
        "my_teams": [one.team for one in mine],
    }

"""What the first start creates."""

from django.db import transaction

from vantage.teams.models import Membership, Role, Team, User


@transaction.atomic
def ensure_first_team() -> tuple[User, Team]:
    """Return the first team and its first admin; at first `admin`, without a password, and `default`."""
    team, _ = Team.objects.get_or_create(slug="default", defaults={"name": "default"})
    first = Membership.objects.filter(team=team, role=Role.ADMIN, user__is_active=True).order_by("pk").first()
    if first is not None:
        return first.user, team
    user, is_new = User.objects.get_or_create(username="admin")
    if is_new:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    Membership.objects.update_or_create(team=team, user=user, defaults={"role": Role.ADMIN})
    return user, team

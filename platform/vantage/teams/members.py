"""Adding, changing and removing the members of a team; each rule's refusal is a ValueError in words."""

from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q
from django.utils.text import slugify

from vantage.teams.audit import record
from vantage.teams.models import Membership, Role, Team, User


class Unknown(ValueError):
    """The account exists, and this team's admins have not said that they know whose it is."""


@transaction.atomic
def found_team(founder: User, name: str) -> Team:
    """Start another team, with its founder as admin."""
    name = name.strip()
    slug = slugify(name)[:100]
    if not slug or len(name) > 100 or not name.isprintable():
        raise ValueError("A team's name has letters or digits, and 100 characters at most.")
    if Team.objects.filter(Q(slug=slug) | Q(name=name)).exists():
        raise ValueError(f"A team called {name} exists already: choose another name.")
    team = Team.objects.create(name=name, slug=slug)
    Membership.objects.create(team=team, user=founder, role=Role.ADMIN)
    record(team, founder, "founded team", name)
    return team


@transaction.atomic
def add(team: Team, admin: User, username: str, role: str, *, is_known: bool = False) -> Membership:
    """Make the person a member, creating their account where there is none.

    Another team's admin may have made an account of that name for somebody else: it is let in only when known.
    """
    checked_role(role)
    user, is_new = User.objects.get_or_create(username=checked_name(username))
    ours = Membership.objects.filter(user=user).exists() and may_let_in(admin, user)
    if not (is_new or is_known or ours):
        raise Unknown(
            f"An account called {user.username} exists already, in no team of yours: "
            "tick “I know this account” to let it in, or choose another name for a new account."
        )
    if is_new:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    membership, is_added = Membership.objects.get_or_create(team=team, user=user, defaults={"role": role})
    if not is_added:
        raise ValueError(f"{user.username} is already in this team: change the role in the table.")
    record(team, admin, "added member", user.username, role=role)
    return membership


@transaction.atomic
def change_role(membership: Membership, admin: User, role: str) -> None:
    checked_role(role)
    if role != Role.ADMIN:
        keep_an_admin(membership)
    Membership.objects.filter(pk=membership.pk).update(role=role)
    record(membership.team, admin, "changed the role of", membership.user.username, role=role)


@transaction.atomic
def remove(membership: Membership, admin: User) -> None:
    keep_an_admin(membership)
    Membership.objects.filter(pk=membership.pk).delete()
    record(membership.team, admin, "removed member", membership.user.username)


def keep_an_admin(membership: Membership) -> None:
    """Refuse to leave a team without an admin; the team's row is locked, so two at once cannot do it either."""
    Team.objects.select_for_update().get(pk=membership.team_id)
    others = Membership.objects.filter(team_id=membership.team_id, role=Role.ADMIN).exclude(pk=membership.pk)
    if not others.exists():
        raise ValueError(f"{membership.user.username} is the only admin: make somebody else admin first.")


def may_let_in(admin: User, user: User) -> bool:
    """Whether an admin may make a login link for a user: only if they manage every team that it would open."""
    theirs = Membership.objects.filter(user=user).values_list("team_id", flat=True)
    managed = Membership.objects.filter(user=admin, role=Role.ADMIN).values_list("team_id", flat=True)
    return set(theirs) <= set(managed)


def checked_name(username: str) -> str:
    username = User.normalize_username(username.strip())
    try:
        UnicodeUsernameValidator()(username)
    except ValidationError:
        raise ValueError("A username has letters, digits and @ . + - _ only.") from None
    if len(username) > 150:
        raise ValueError("A username has at most 150 characters.")
    return username


def checked_role(role: str) -> None:
    if role not in Role.values:
        raise ValueError(f"Choose one of the roles {', '.join(Role.values)}.")

"""One-time login links: made by `vantage up`, by `vantage login-link`, and by an admin for a new member."""

import hashlib
import secrets
from datetime import timedelta

from django.urls import reverse
from django.utils import timezone

from vantage.teams.models import LoginLink, User

LIFE = timedelta(minutes=15)


def login_link(user: User) -> str:
    """Return the path of a link that logs the user in once, within 15 minutes."""
    token = secrets.token_urlsafe(32)
    LoginLink.objects.filter(expires__lt=timezone.now()).delete()
    LoginLink.objects.create(user=user, digest=digest(token), expires=timezone.now() + LIFE)
    return reverse("login_link", args=[token])


def spend(token: str) -> User | None:
    """Use the link up and return its user; None when it was used before, is too old, or never was."""
    now = timezone.now()
    links = LoginLink.objects.filter(digest=digest(token))
    # No condition on the user here: a join turns the UPDATE into a subquery, which two at once both pass.
    if not links.filter(used=None, expires__gt=now).update(used=now):
        return None
    return User.objects.filter(pk__in=links.values("user"), is_active=True).first()


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()

"""People and teams. Every other row belongs to a team, and every read goes through `visible_to`."""

from typing import Protocol

from django.contrib.auth.models import AbstractUser
from django.db import models


class Reader(Protocol):
    """Whoever reads: a person, and later a token or a link."""

    def visible_teams(self) -> "models.QuerySet[Team]": ...


class User(AbstractUser):
    """A person; what they may do is said by their memberships."""

    def visible_teams(self) -> "models.QuerySet[Team]":
        return Team.objects.filter(members=self)


class Team(models.Model):
    """Those who share runs, datasets and algorithms."""

    name = models.CharField(max_length=100, unique=True)
    slug = models.SlugField(max_length=100, unique=True)
    members = models.ManyToManyField(User, through="Membership", related_name="teams")
    created = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class Role(models.TextChoices):
    VIEWER = "viewer"
    MEMBER = "member"
    ADMIN = "admin"


class Membership(models.Model):
    """What one person may do in one team: viewers read, members also run, admins also manage."""

    team = models.ForeignKey(Team, models.CASCADE)
    user = models.ForeignKey(User, models.CASCADE)
    role = models.CharField(max_length=10, choices=Role, default=Role.MEMBER)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "user"], name="one_membership_per_team")]

    def __str__(self) -> str:
        return f"{self.user} in {self.team}"


class TeamQuerySet(models.QuerySet):
    """Rows that belong to a team through a field `team`; every model of the platform uses or extends it."""

    def visible_to(self, reader: Reader) -> "TeamQuerySet":
        """Rows of the teams that the reader belongs to; everything else does not exist for them."""
        return self.filter(team__in=reader.visible_teams())


class LoginLink(models.Model):
    """A link that logs its user in once; only the token's digest is kept."""

    user = models.ForeignKey(User, models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64, unique=True)
    expires = models.DateTimeField()
    used = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"link for {self.user}"


class AuditEntry(models.Model):
    """Who did what, when; kept when the person or the thing is gone."""

    team = models.ForeignKey(Team, models.CASCADE, related_name="audit")
    actor = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    actor_name = models.CharField(max_length=150)
    verb = models.CharField(max_length=100)
    subject = models.CharField(max_length=300)
    detail = models.JSONField(default=dict)
    created = models.DateTimeField(auto_now_add=True)
    objects = TeamQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["team", "-created"], name="audit_newest_first")]

    def __str__(self) -> str:
        return f"{self.actor_name} {self.verb} {self.subject}"

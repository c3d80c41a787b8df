"""People and teams. Every other row belongs to a team, and every read goes through `visible_to`."""

from django.contrib.auth.models import AbstractUser
from django.db import models


class User(AbstractUser):
    """A person; what they may do is said by their memberships."""


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

    def visible_to(self, reader: User) -> "TeamQuerySet":
        """Rows of the teams that the reader belongs to; everything else does not exist for them."""
        return self.filter(team__members=reader)

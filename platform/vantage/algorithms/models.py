"""A team's own algorithms; a version never changes, and a run keeps its own copy."""

from django.db import models
from vantage_trainer.composition import Algorithm as Composition

from vantage.stored import StoredText
from vantage.teams.models import Reader, Team, TeamQuerySet, User


class AlgorithmQuerySet(TeamQuerySet):
    def visible_to(self, reader: Reader) -> "AlgorithmQuerySet":
        """Algorithms of the reader's teams that are not deleted."""
        return super().visible_to(reader).filter(deleted=None)

    def deleted_of(self, reader: Reader) -> "AlgorithmQuerySet":
        return super().visible_to(reader).exclude(deleted=None)


class Algorithm(models.Model):
    """A named composition of a team."""

    team = models.ForeignKey(Team, models.CASCADE, related_name="algorithms")
    name = models.CharField(max_length=64)
    created = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    deleted = models.DateTimeField(null=True)
    objects = AlgorithmQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["team", "name"], condition=models.Q(deleted=None), name="algorithm_name_in_team"
            )
        ]

    def __str__(self) -> str:
        return self.name


class VersionQuerySet(models.QuerySet):
    def visible_to(self, reader: Reader) -> "VersionQuerySet":
        return self.filter(algorithm__team__in=reader.visible_teams(), algorithm__deleted=None)

    def of_team(self, team: Team) -> "VersionQuerySet":
        """What runs of the team can start from, newest first."""
        living = self.filter(algorithm__team=team, algorithm__deleted=None)
        return living.select_related("algorithm").order_by("algorithm__name", "-number")


class AlgorithmVersion(models.Model):
    """One composition under the name, with the reason for it."""

    algorithm = models.ForeignKey(Algorithm, models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    composition = models.JSONField()
    note = StoredText(blank=True)
    author = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    created = models.DateTimeField(auto_now_add=True)
    objects = VersionQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["algorithm", "number"], name="one_number_per_algorithm")]

    def __str__(self) -> str:
        return f"{self.algorithm.name}@{self.number}"

    @property
    def parts(self) -> Composition:
        return Composition.model_validate(self.composition)

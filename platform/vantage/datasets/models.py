"""Datasets, their immutable versions, and the rows that a run trains on."""

from django.db import models

from vantage.teams.models import Team, TeamQuerySet, User


class Dataset(models.Model):
    """A named problem set of a team."""

    team = models.ForeignKey(Team, models.CASCADE, related_name="datasets")
    name = models.CharField(max_length=64)
    description = models.TextField(blank=True)
    created = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True)
    deleted = models.DateTimeField(null=True)
    objects = TeamQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["team", "name"], condition=models.Q(deleted=None), name="dataset_name_in_team"
            )
        ]

    def __str__(self) -> str:
        return self.name


class DatasetVersion(models.Model):
    """What a run names: never changed, told apart by its content."""

    dataset = models.ForeignKey(Dataset, models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    num_rows = models.PositiveIntegerField()
    source = models.JSONField(default=dict)
    created = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["dataset", "number"], name="one_number_per_dataset")]

    def __str__(self) -> str:
        return f"{self.dataset.name}@{self.number}"


class Row(models.Model):
    """One problem; text is stored through `vantage.text.storable`."""

    version = models.ForeignKey(DatasetVersion, models.CASCADE, related_name="rows")
    number = models.PositiveIntegerField()
    prompt = models.TextField()
    answer = models.TextField()
    solution = models.TextField(blank=True)
    meta = models.JSONField(default=dict)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["version", "number"], name="one_row_per_number")]

    def __str__(self) -> str:
        return f"row {self.number} of {self.version}"

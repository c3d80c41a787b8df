"""Datasets, their immutable versions, and the rows that a run trains on."""

import json
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

from django.conf import settings
from django.db import models

from vantage.stored import StoredJSON, StoredText
from vantage.teams.models import Reader, Team, TeamQuerySet, User

CHUNK = 2000


class DatasetQuerySet(TeamQuerySet):
    def visible_to(self, reader: Reader) -> "DatasetQuerySet":
        """Datasets of the reader's teams that are not deleted."""
        return super().visible_to(reader).filter(deleted=None)

    def deleted_of(self, reader: Reader) -> "DatasetQuerySet":
        return super().visible_to(reader).exclude(deleted=None)


class Dataset(models.Model):
    """A named problem set of a team."""

    team = models.ForeignKey(Team, models.CASCADE, related_name="datasets")
    name = models.CharField(max_length=64)
    description = models.TextField(blank=True)
    created = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True)
    deleted = models.DateTimeField(null=True)
    objects = DatasetQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["team", "name"], condition=models.Q(deleted=None), name="dataset_name_in_team"
            )
        ]

    def __str__(self) -> str:
        return self.name


class VersionQuerySet(models.QuerySet):
    def visible_to(self, reader: Reader) -> "VersionQuerySet":
        return self.filter(dataset__team__in=reader.visible_teams(), dataset__deleted=None)

    def of_team(self, team: Team) -> "VersionQuerySet":
        """What runs of the team can name, newest first."""
        living = self.filter(dataset__team=team, dataset__deleted=None)
        return living.select_related("dataset").order_by("dataset__name", "-number")


class DatasetVersion(models.Model):
    """What a run names: never changed, told apart by its content."""

    dataset = models.ForeignKey(Dataset, models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    num_rows = models.PositiveIntegerField()
    source = StoredJSON(default=dict)
    facts = StoredJSON(default=dict)
    created = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True)
    objects = VersionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["dataset", "number"], name="one_number_per_dataset"),
            models.UniqueConstraint(fields=["dataset", "digest"], name="one_version_per_content"),
        ]

    def __str__(self) -> str:
        return f"{self.dataset.name}@{self.number}"

    @property
    def has_solutions(self) -> bool:
        """Whether a warm start finds anything to imitate."""
        return self.rows.exclude(solution="").exists()

    def write_jsonl(self, path: Path) -> int:
        """Write the rows in the run folder's form; returns how many."""
        num_rows = 0
        with path.open("w", encoding="ascii") as file:
            for line in self.lines():
                num_rows += file.write(line) > 0
        return num_rows

    def lines(self) -> Iterator[str]:
        return (row.line() for row in self.rows.order_by("number").iterator(chunk_size=CHUNK))


class Row(models.Model):
    """One problem."""

    version = models.ForeignKey(DatasetVersion, models.CASCADE, related_name="rows")
    number = models.PositiveIntegerField()
    prompt = StoredText()
    answer = StoredText()
    solution = StoredText(blank=True)
    meta = StoredJSON(default=dict)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["version", "number"], name="one_row_per_number")]

    def __str__(self) -> str:
        return f"row {self.number} of {self.version}"

    def line(self) -> str:
        """The row as a line of a run folder's data file: ASCII, so that any text survives."""
        row = {"id": str(self.number), "prompt": self.prompt, "answer": self.answer}
        solution = {"solution": self.solution} if self.solution else {}
        return json.dumps(row | solution | {"meta": self.meta}) + "\n"


class Upload(models.Model):
    """A file that waits for its columns to be mapped; the file itself lies in the home folder."""

    id = models.UUIDField(primary_key=True, default=uuid4)
    team = models.ForeignKey(Team, models.CASCADE, related_name="+")
    created_by = models.ForeignKey(User, models.CASCADE, related_name="+")
    name = models.CharField(max_length=64)
    filename = models.CharField(max_length=255)
    format = models.CharField(max_length=10)
    created = models.DateTimeField(auto_now_add=True)
    importing = models.BooleanField(default=False)  # a job was queued for it, which may have to wait
    objects = TeamQuerySet.as_manager()

    def __str__(self) -> str:
        return self.filename

    @property
    def path(self) -> Path:
        return Path(settings.HOME) / "uploads" / str(self.pk)

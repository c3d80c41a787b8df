"""How a run names a dataset version: `name@number`, inside its team."""

from django.db.models import F

from vantage.datasets.models import DatasetVersion
from vantage.numbers import whole
from vantage.teams.models import Team
from vantage.text import storable


def lookup(team: Team, reference: str) -> DatasetVersion | None:
    """The version that `name@number` means in the team, or none."""
    name, _, number = reference.rpartition("@")
    if (meant := whole(number, 2**31 - 1)) is None:
        return None
    return DatasetVersion.objects.of_team(team).filter(dataset__name=storable(name), number=meant).first()


def find(team: Team, reference: str) -> DatasetVersion:
    """The version that `name@number` means in the team. ValueError says what to change."""
    version = lookup(team, reference)
    if version is None:
        raise ValueError(f"There is no dataset version “{reference}” in this team: choose one, written name@number.")
    return version


def choices(team: Team) -> list[tuple[str, str]]:
    """All versions of a team for a form's select: (name@number, what is shown)."""
    versions = DatasetVersion.objects.of_team(team).annotate(name=F("dataset__name"))
    return [
        (f"{name}@{number}", f"{name}@{number} ({num_rows:,} rows)")
        for name, number, num_rows in versions.values_list("name", "number", "num_rows")
    ]

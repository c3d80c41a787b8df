"""Say before a run is launched which held-out problems it trains on."""

from collections.abc import Iterator

from vantage_trainer.data_files import imitated_file, training_files
from vantage_trainer.refusal import Refusal, refuse
from vantage_trainer.spec import RunSpec

from vantage.datasets.models import DatasetVersion
from vantage.datasets.naming import lookup
from vantage.datasets.overlap import Overlap, overlap
from vantage.teams.models import Team

LARGEST = 200_000  # rows; comparing more would keep the form waiting


def overlaps(team: Team, spec: RunSpec) -> Iterator[Refusal]:
    """Return a note for each evaluation set whose problems are asked or imitated in training too."""
    for number, version, shared in compared(team, spec):
        if shared:
            yield refuse(
                "overlap",
                f"evaluation.sets.{number}.dataset",
                "Of the {total} problems of {name}, training holds {shared}: what they tell may be memory.",
                total=version.num_rows,
                name=str(version),
                shared=shared.sentence,
            )


def compared(team: Team, spec: RunSpec) -> Iterator[tuple[int, DatasetVersion, Overlap]]:
    """Compare each evaluation set with all that is trained on; one that is trained on itself is told elsewhere."""
    trained = training_files(spec) | imitated_file(spec)
    others = [version for reference in trained.values() if (version := lookup(team, reference))]
    if sum(version.num_rows for version in others) > LARGEST:
        return
    for number, one in enumerate(spec.evaluation.sets):
        version = lookup(team, one.dataset)
        if version is not None and version not in others and version.num_rows <= LARGEST:
            yield number, version, overlap(others, version)

"""Start the recipe `smollm2`: upload the problem sets given by path, as the site does, and queue its run."""

from pathlib import Path

from django.core.files import File
from vantage_trainer import recipes
from vantage_trainer.spec import RunSpec

from vantage.datasets import uploads
from vantage.datasets.columns import guess
from vantage.datasets.models import DatasetVersion
from vantage.runs.create import create_run
from vantage.runs.models import Run
from vantage.runs.overlaps import compared
from vantage.teams.models import Team, User

TAG = "smollm2"


def queue_smollm2(team: Team, user: User, files: dict[str, Path]) -> Run:
    """Upload each file under its dataset's name, unless its content is known, and queue the run on these versions."""
    versions = {name: str(upload(team, user, name, path)) for name, path in files.items()}
    spec = _with_datasets(recipes.smollm2_spec(), versions)
    return create_run(team, user, "SmolLM2 on word problems", spec, tags=[TAG])


def shared(run: Run) -> list[str]:
    """Say of each held-out set what of it is trained on, also where that is nothing."""
    return [
        f"Of the {version.num_rows} held-out problems of {version}, training holds "
        + (found.sentence if found else "none, not even with other numbers")
        + "."
        for _, version, found in compared(run.team, RunSpec.model_validate(run.spec))
    ]


def upload(team: Team, user: User, name: str, path: Path) -> DatasetVersion:
    """Store a file as a dataset with the columns that the site suggests; what cannot be used is left out, and told."""
    try:
        with path.open("rb") as file:
            kept = uploads.keep(team, user, name, File(file, path.name))
    except OSError as fault:
        raise ValueError(f"The file {path} cannot be read ({fault.strerror}): check its path.") from None
    columns = guess(uploads.sample(kept))
    report = uploads.examine(kept, columns)
    if not report.num_good:
        uploads.forget(kept)
        raise ValueError(f"No record of {path} can be used: upload it on the page Datasets, which says why.")
    version, _ = uploads.store(kept, columns, user)
    return version


def _with_datasets(spec: RunSpec, versions: dict[str, str]) -> RunSpec:
    gsm8k, single, multi, held_out = (versions[file.name] for file in recipes.SMOLLM2_FILES)
    assert spec.warm_start is not None
    spec.warm_start.dataset, spec.data.train = gsm8k, single
    spec.data.more[0].dataset, spec.evaluation.sets[0].dataset = multi, held_out
    return spec

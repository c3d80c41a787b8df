"""Import, as the site knows it: a file becomes a version of a dataset, or a list of what is wrong with it."""

from collections.abc import Iterator

from vantage_trainer.jobspec import ImportSpec, JobSpec
from vantage_trainer.refusal import Refusal, refuse

from vantage.datasets.models import DatasetVersion, Upload
from vantage.datasets.problems import TITLES
from vantage.runs.job_kind import Context, JobKind, results_of
from vantage.runs.models import Run
from vantage.runs.states import Status
from vantage.teams.models import Team


def _refusals(team: Team, spec: JobSpec, parent: Run | None) -> Iterator[Refusal]:
    assert isinstance(spec, ImportSpec)
    if spec.hub is None and not Upload.objects.filter(team=team, pk=spec.upload or None).exists():
        yield refuse("no_upload", "", "The uploaded file is no longer kept: upload it again.")


def _result(run: Run) -> Context:
    told = next(iter(results_of(run)), None)
    spec = ImportSpec.model_validate(run.spec)
    version = None
    if told and isinstance(told.get("dataset"), int) and isinstance(told.get("number"), int):
        versions = DatasetVersion.objects.filter(dataset__team=run.team, dataset__deleted=None)
        version = versions.filter(dataset=told["dataset"], number=told["number"]).first()
    left_out = told.get("left_out") if told else None
    upload = Upload.objects.filter(team=run.team, pk=spec.upload).first() if spec.upload else None
    return {
        "told": told,
        "import_spec": spec,
        "version": version,
        "left_out": [(TITLES.get(kind, kind), num) for kind, num in left_out.items()] if left_out else [],
        "may_leave_out": bool(told and told.get("num_good") and told.get("num_bad")) and run.status == Status.FAILED,
        "upload": upload if run.status in (Status.FAILED, Status.STOPPED) else None,
    }


KIND = JobKind("Import", _refusals, result=_result)

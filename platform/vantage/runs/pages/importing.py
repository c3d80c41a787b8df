"""Starting an import as a job: of an uploaded file, of one on the hub, and once more without what cannot be used."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST
from vantage_trainer.jobspec import ImportSpec

from vantage.datasets import uploads
from vantage.datasets.columns import Columns, guess
from vantage.datasets.creating import map_known, show_new
from vantage.datasets.hub_form import HubForm
from vantage.datasets.models import Upload
from vantage.forms_from_schema import bind
from vantage.names import checked_name
from vantage.runs.import_queue import import_from_hub, import_upload, node_here
from vantage.runs.launch_token import launch_token
from vantage.runs.pages.own import own_job
from vantage.runs.states import Kind, Status
from vantage.teams.access import current_team, found, may, reader, require_role
from vantage.teams.models import Role


@require_POST
def start(request: HttpRequest, pk: str) -> HttpResponse:
    """Queue the import of a large file with the columns that were chosen; the mapping page leads here.

    Where no node sees the site's uploads it is done here and now, however long it takes.
    """
    upload = found(Upload, request, pk=pk)
    may(request, upload.team, Role.MEMBER)
    node = node_here()
    if node is None or not upload.path.exists():
        return map_known(request, upload, at_once=True) if upload.path.exists() else redirect("dataset_new")
    columns = bind(Columns, request.POST, base=guess(uploads.sample(upload))).value
    if columns is None:
        return redirect("dataset_upload", pk=upload.pk)
    leave_out = request.POST.get("create") == "without"
    job = import_upload(upload, reader(request), columns, node, leave_out=leave_out)
    return redirect("job", pk=job.pk)


@require_POST
def without(request: HttpRequest, pk: int) -> HttpResponse:
    """Import again what a job refused, without the records that cannot be used."""
    job = own_job(request, pk)
    may(request, job.team, Role.MEMBER)
    spec = ImportSpec.model_validate(job.spec) if job.kind == Kind.IMPORT else None
    if spec is None or job.status != Status.FAILED:
        messages.info(request, "There is nothing to leave out.")
        return redirect("job", pk=job.pk)
    if spec.hub:
        columns = Columns.model_validate(spec.columns) if spec.columns else None
        token = launch_token(request.POST)
        again = import_from_hub(job.team, reader(request), spec.name, spec.hub, columns, token, leave_out=True)
        return redirect("job", pk=again.pk)
    upload, node = Upload.objects.filter(team=job.team, pk=spec.upload).first(), node_here()
    if upload is None or node is None:
        messages.error(request, "The uploaded file is no longer kept, or no node sees it: upload it again.")
        return redirect("dataset_new")
    columns = Columns.model_validate(spec.columns or {})
    return redirect("job", pk=import_upload(upload, reader(request), columns, node, leave_out=True).pk)


@require_POST
@require_role(Role.MEMBER)
def from_hub(request: HttpRequest) -> HttpResponse:
    """Queue the import of a dataset on the hub; refused, the form comes back with what was typed."""
    bound = bind(HubForm, request.POST)
    try:
        name = checked_name(request.POST.get("name", ""))
    except ValueError as refusal:
        return show_new(request, name_refusal=str(refusal), hub=bound.root)
    if bound.value is None:
        return show_new(request, bound=bound, hub=bound.root)
    wanted = bound.value
    job = import_from_hub(
        current_team(request),
        reader(request),
        name,
        wanted.file_there,
        wanted.columns,
        launch_token(request.POST),
        leave_out=wanted.leave_out,
    )
    return redirect("job", pk=job.pk)

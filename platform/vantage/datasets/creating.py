"""The pages that create a version: by generator, or by upload, mapping and checks."""

from collections.abc import Mapping
from uuid import uuid4

from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from vantage.datasets import uploads
from vantage.datasets.columns import Columns, guess, names
from vantage.datasets.generators import GENERATORS, create_generated
from vantage.datasets.hub_form import HubForm
from vantage.datasets.models import DatasetVersion, Upload
from vantage.datasets.problems import NewRow, Problem, Report
from vantage.forms_from_schema import Bound, FormField, bind, form
from vantage.names import checked_name
from vantage.teams.access import current_team, found, may, reader, require_role
from vantage.teams.models import Role
from vantage.text import showable


@require_http_methods(["GET", "POST"])
@require_role(Role.MEMBER)
def new(request: HttpRequest) -> HttpResponse:
    """Start a version: the two ways stand side by side."""
    if request.method == "GET":
        return show_new(request)
    try:
        name = checked_name(request.POST.get("name", ""))
    except ValueError as refusal:
        return show_new(request, name_refusal=str(refusal))
    try:
        if request.POST.get("how") == "upload":
            return upload_file(request, name)
        return generate(request, name)
    except ValueError as refusal:
        return show_new(request, refusal=str(refusal))


def show_new(
    request: HttpRequest,
    *,
    refusal: str = "",
    name_refusal: str = "",
    bound: Bound | None = None,
    hub: FormField | None = None,
) -> HttpResponse:
    """Show both ways again with what was typed, each refusal where it belongs."""
    generators = [
        (key, generator, bound.root if bound and key == request.POST.get("generator") else form(generator.schema))
        for key, generator in GENERATORS.items()
    ]
    context = {
        "section": "datasets",
        "crumbs": [("Datasets", reverse("datasets")), ("New", "")],
        "generators": generators,
        "how": request.POST.get("how", ""),
        "name": showable(request.POST.get("name", request.GET.get("name", ""))),
        "refusal": refusal,
        "name_refusal": name_refusal,
        "refused": "hub" if hub else request.POST.get("generator", "upload"),
        "hub": hub or form(HubForm),
        "token": uuid4(),
    }
    return render(request, "datasets/new.html", context, status=400 if refusal or name_refusal or bound else 200)


def generate(request: HttpRequest, name: str) -> HttpResponse:
    key = request.POST.get("generator", "")
    if key not in GENERATORS:
        raise ValueError("Choose a generator.")
    bound = bind(GENERATORS[key].schema, request.POST)
    if bound.value is None:
        return show_new(request, bound=bound)
    version, is_new = create_generated(current_team(request), reader(request), name, key, bound.value.model_dump())
    return created(request, version, is_new)


def upload_file(request: HttpRequest, name: str) -> HttpResponse:
    file = request.FILES.get("file")
    if not isinstance(file, UploadedFile):
        raise ValueError("Choose a file to upload.")
    upload = uploads.keep(current_team(request), reader(request), name, file)
    return redirect("dataset_upload", pk=upload.pk)


@require_http_methods(["GET", "POST"])
def map_columns(request: HttpRequest, pk: str) -> HttpResponse:
    """Map the columns with a preview; create the version once nothing is wrong, or what is wrong is left out."""
    upload = found(Upload, request, pk=pk)
    may(request, upload.team, Role.MEMBER)
    if not upload.path.exists():
        uploads.forget(upload)
        messages.error(request, "The uploaded file is gone: upload it again.")
        return redirect("dataset_new")
    if "discard" in request.POST:
        uploads.forget(upload)
        return redirect("dataset_new")
    return map_known(request, upload)


def map_known(request: HttpRequest, upload: Upload, *, at_once: bool = False) -> HttpResponse:
    """Preview, or check and create; a large file is a job's work unless it has to be done at once."""
    sample = uploads.sample(upload)
    columns = bind(Columns, request.POST, base=guess(sample)).value or guess(sample)
    unknown = wrong_choices(columns, names(sample))
    if unknown or "create" not in request.POST:
        return show_columns(request, upload, names(sample), columns, errors=unknown)
    if uploads.is_large(upload) and not at_once:
        return redirect("dataset_import", pk=upload.pk, preserve_request=True)
    report = uploads.examine(upload, columns)
    if report.num_good and (not report.num_bad or request.POST["create"] == "without"):
        return created(request, *uploads.store(upload, columns, reader(request)))
    return show_columns(request, upload, names(sample), columns, report=report)


def show_columns(
    request: HttpRequest,
    upload: Upload,
    known: list[str],
    columns: Columns,
    *,
    errors: Mapping[str, list[str]] | None = None,
    report: Report | None = None,
) -> HttpResponse:
    offered = [(name, showable(name)) for name in known]
    optional = [("", "none"), *offered]
    choices = {"prompt": offered, "prompt_end": optional, "answer": offered, "solution": optional}
    context = {
        "section": "datasets",
        "crumbs": [("Datasets", reverse("datasets")), ("New", reverse("dataset_new")), (upload.name, "")],
        "upload": upload,
        "filename": showable(upload.filename),
        "form": form(Columns, columns, choices=choices, errors=errors),
        "preview": [shown(place, row) for place, row in uploads.preview(upload, columns)],
        "report": report,
        "is_large": uploads.is_large(upload),
    }
    return render(request, "datasets/columns.html", context, status=400 if errors or report else 200)


def shown(place: str, row: NewRow | Problem) -> dict[str, str]:
    """A row of the preview as text; `problem` says why there is none."""
    if isinstance(row, Problem):
        return {"place": place, "problem": str(row)}
    texts = {"prompt": row.prompt, "answer": row.answer, "solution": row.solution}
    return {"place": place} | {part: showable(text)[:5000] for part, text in texts.items()}


def wrong_choices(columns: Columns, known: list[str]) -> dict[str, list[str]]:
    """Refuse columns that the file does not have, and one column in two parts."""
    chosen = columns.model_dump(include={"prompt", "prompt_end", "answer", "solution"}, exclude_none=True)
    wrong = {part: ["Choose a column of the file."] for part, name in chosen.items() if name not in known}
    if columns.answer in (columns.prompt, columns.prompt_end):
        wrong["answer"] = ["Choose another column than the prompt's."]
    return wrong


def created(request: HttpRequest, version: DatasetVersion, is_new: bool) -> HttpResponse:
    said = f"{version} holds {version.num_rows:,} rows." if is_new else f"This content is {version} already."
    messages.success(request, said)
    return redirect("dataset_version", pk=version.dataset_id, number=version.number)

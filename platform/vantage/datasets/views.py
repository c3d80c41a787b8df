"""The list of datasets, one version with its rows, deleting and undoing."""

from collections.abc import AsyncIterator

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.core.paginator import Page, Paginator
from django.db.models import Count, Prefetch, Q, QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from vantage.datasets import store
from vantage.datasets.columns import Columns
from vantage.datasets.models import CHUNK, Dataset, DatasetVersion, Row
from vantage.datasets.problems import TITLES
from vantage.numbers import whole
from vantage.teams.access import can, current_team, found, may, reader
from vantage.teams.models import Role
from vantage.text import showable, storable

ROWS_PER_PAGE = 50
SHOWN_CHARACTERS = 400
PARTS = ("prompt", "answer", "solution")


@require_GET
def datasets(request: HttpRequest) -> HttpResponse:
    """The team's datasets, newest first; what was deleted can be brought back here."""
    team = current_team(request)
    newest_first = Prefetch("versions", DatasetVersion.objects.order_by("-number"))
    mine = Dataset.objects.visible_to(reader(request)).filter(team=team).prefetch_related(newest_first)
    deleted = Dataset.objects.deleted_of(reader(request)).filter(team=team).order_by("-deleted")
    context = {
        "section": "datasets",
        "datasets": mine.annotate(num_versions=Count("versions")).order_by("-created"),
        "deleted": deleted[:50],
        "just_deleted": deleted.filter(pk=as_number(request.GET.get("deleted"))).first(),
        "creates": can(request, team, Role.MEMBER),
    }
    return render(request, "datasets/list.html", context)


@require_GET
def dataset(request: HttpRequest, pk: int, number: int | None = None) -> HttpResponse:
    """One version, the newest unless a number is given: facts, lengths, rows with search and pages."""
    shown = found(Dataset, request, pk=pk)
    versions = list(shown.versions.order_by("-number"))
    version = next((v for v in versions if v.number == number), None) if number is not None else versions[0]
    if version is None:
        return get_object_or_404(DatasetVersion.objects.none())
    words = request.GET.get("q", "")
    context = {
        "section": "datasets",
        "crumbs": [("Datasets", reverse("datasets")), (str(version), "")],
        "dataset": shown,
        "version": version,
        "versions": versions,
        "same": same_content(request, version),
        "origin": origin(version),
        "lengths": lengths(version),
        "page": page_of_rows(version, words, request.GET.get("page")),
        "q": showable(words),
        "changes": can(request, shown.team, Role.MEMBER),
    }
    return render(request, "datasets/dataset.html", context)


def page_of_rows(version: DatasetVersion, words: str, page: str | None) -> Page:
    """One page of rows, each text cut to what a table can show."""
    numbers = matching(version, words) if words else range(1, version.num_rows + 1)
    shown = Paginator(numbers, ROWS_PER_PAGE).get_page(page)
    rows = version.rows.filter(number__in=list(shown.object_list)).order_by("number")
    shown.object_list = [
        {"number": row.number, "prompt": cut(row.prompt), "answer": cut(row.answer), "solution": cut(row.solution)}
        for row in rows
    ]
    return shown


def matching(version: DatasetVersion, words: str) -> QuerySet:
    """Numbers of the rows that hold the words anywhere."""
    text = storable(words)
    holds = Q(prompt__icontains=text) | Q(answer__icontains=text) | Q(solution__icontains=text)
    return version.rows.filter(holds).order_by("number").values_list("number", flat=True)


def cut(text: str) -> str:
    text = showable(text)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}… ({len(text):,} characters)"


def same_content(request: HttpRequest, version: DatasetVersion) -> list[DatasetVersion]:
    """Versions of other datasets of the team that hold exactly these rows."""
    others = DatasetVersion.objects.visible_to(reader(request)).filter(dataset__team=version.dataset.team)
    return list(others.filter(digest=version.digest).exclude(pk=version.pk).select_related("dataset"))


def origin(version: DatasetVersion) -> list[tuple[str, str]]:
    """How the version was made, in words: the generator's parameters, or the columns and what was left out."""
    source = version.source
    titles = {key: info.title or key for key, info in Columns.model_fields.items()}
    said = [(key, str(value)) for key, value in source.get("parameters", {}).items()]
    columns = source.get("columns", {})
    said += [
        (title, "yes" if columns[key] is True else columns[key]) for key, title in titles.items() if columns.get(key)
    ]
    said += [(TITLES[kind], f"{number} left out") for kind, number in source.get("left_out", {}).items()]
    return [(title, showable(value)) for title, value in said]


def lengths(version: DatasetVersion) -> list[dict[str, object]]:
    """Length histograms, bars scaled to the tallest: {part, bars: [{low, high, num, share}]}."""
    parts: list[dict[str, object]] = []
    known = version.facts.get("lengths", {})
    for part, bars in [(part, known[part]) for part in PARTS if part in known]:
        most = max(number for _, _, number in bars)
        shown = [{"low": low, "high": high, "num": num, "share": num / most} for low, high, num in bars]
        parts.append({"part": part, "bars": shown})
    return parts


@require_GET
def row(request: HttpRequest, pk: int, number: int, row_number: int) -> HttpResponse:
    """One row in full."""
    version = found_version(request, pk, number)
    shown = get_object_or_404(Row, version=version, number=row_number)
    version_url = reverse("dataset_version", args=[pk, number])
    context = {
        "section": "datasets",
        "crumbs": [("Datasets", reverse("datasets")), (str(version), version_url), (f"Row {row_number}", "")],
        "version": version,
        "row": shown,
        "texts": [(part, showable(getattr(shown, part))) for part in PARTS],
        "meta": [(showable(key), showable(str(value))) for key, value in shown.meta.items()],
    }
    return render(request, "datasets/row.html", context)


@require_GET
def download(request: HttpRequest, pk: int, number: int) -> StreamingHttpResponse:
    """The rows as JSON Lines, sent while they are read."""
    version = found_version(request, pk, number)
    response = StreamingHttpResponse(pieces(version), content_type="application/jsonl")
    response["Content-Disposition"] = f'attachment; filename="{version.dataset.name}-{version.number}.jsonl"'
    return response


async def pieces(version: DatasetVersion) -> AsyncIterator[str]:
    """Asynchronous, because a plain iterator would be read whole before the first byte is sent."""
    for start in range(0, version.num_rows, CHUNK):
        yield await sync_to_async(lines_after)(version, start)


def lines_after(version: DatasetVersion, start: int) -> str:
    rows = version.rows.filter(number__gt=start, number__lte=start + CHUNK).order_by("number")
    return "".join(row.line() for row in rows)


def found_version(request: HttpRequest, pk: int, number: int) -> DatasetVersion:
    return found(DatasetVersion, request, dataset=pk, number=number)


@require_POST
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    gone = found(Dataset, request, pk=pk)
    may(request, gone.team, Role.MEMBER)
    store.delete(gone, reader(request))
    return redirect(f"{reverse('datasets')}?deleted={gone.pk}")


@require_POST
def restore(request: HttpRequest, pk: int) -> HttpResponse:
    gone = get_object_or_404(Dataset.objects.deleted_of(reader(request)), pk=pk)
    may(request, gone.team, Role.MEMBER)
    try:
        store.restore(gone, reader(request))
    except ValueError as refusal:
        messages.error(request, str(refusal))
        return redirect("datasets")
    messages.success(request, f"{gone.name} is back.")
    return redirect("dataset", pk=gone.pk)


def as_number(text: str | None) -> int | None:
    return whole(text or "")

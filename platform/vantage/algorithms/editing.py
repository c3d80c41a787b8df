"""The pages that save a version: a form made from the composition's schema, or JSON."""

from collections.abc import Sequence

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods
from pydantic import ValidationError
from vantage_trainer.composition import Algorithm as Composition
from vantage_trainer.refusals import composition_refusals, explain

from vantage.algorithms import store
from vantage.algorithms.describe import HIDDEN, algorithm_form
from vantage.algorithms.explaining import board
from vantage.algorithms.formula.objective import formula
from vantage.algorithms.models import Algorithm, AlgorithmVersion
from vantage.algorithms.refusing import refused
from vantage.algorithms.words import WORDS
from vantage.forms_from_schema import FormField, bind
from vantage.names import checked_name
from vantage.teams.access import current_team, found, may, reader, require_role
from vantage.teams.models import Role, Team
from vantage.text import showable

LONGEST_JSON = 2**20


@require_http_methods(["GET", "POST"])
@require_role(Role.MEMBER)
def new(request: HttpRequest) -> HttpResponse:
    """A new algorithm, started from a preset or another one: ?from=grpo."""
    team = current_team(request)
    try:
        start = store.find(team, request.GET.get("from") or "grpo")
    except ValueError as refusal:
        messages.error(request, showable(str(refusal)))
        return redirect("algorithms")
    if request.method == "GET":
        return show_form(request, algorithm_form(start), start)
    return save(request, team, request.POST.get("name", ""), start)


@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    """The next version of an own algorithm."""
    own = found(Algorithm, request, pk=pk)
    may(request, own.team, Role.MEMBER)
    newest = own.versions.latest("number")
    if request.method == "GET":
        return show_form(request, algorithm_form(newest.parts), newest.parts, own=own)
    return save(request, own.team, own.name, newest.parts, own=own)


def save(
    request: HttpRequest, team: Team, name: str, start: Composition, *, own: Algorithm | None = None
) -> HttpResponse:
    bound = bind(Composition, request.POST, base=start, words=WORDS, hidden=HIDDEN)
    if bound.value is not None:
        bound = refused(bound, bound.value)
    if bound.value is None:
        return show_form(request, bound.root, start, own=own, status=200 if bound.reshaped else 400)
    try:
        version, is_new = store.save(
            team, reader(request), checked_name(name), bound.value, request.POST.get("note", "")
        )
    except ValueError as refusal:
        return show_form(request, bound.root, bound.value, own=own, refusal=str(refusal), status=400)
    return saved(request, version, is_new)


def show_form(
    request: HttpRequest,
    fields: FormField,
    explained: Composition,
    *,
    own: Algorithm | None = None,
    refusal: str = "",
    status: int = 200,
) -> HttpResponse:
    title = f"New version of {own.name}" if own else "New algorithm"
    start = str(own.versions.latest("number")) if own else request.GET.get("from") or "grpo"
    context = board([start], request.POST, name="from") | {
        "section": "algorithms",
        "crumbs": [("Algorithms", reverse("algorithms")), (title, "")],
        "title": title,
        "own": own,
        "fields": fields,
        "formula": formula(explained),
        "refusal": refusal,
        "name": showable(request.POST.get("name", "")),
        "note": showable(request.POST.get("note", "")),
        "start": showable(start),
        "choices": [] if own else store.choices(current_team(request)),
    }
    return render(request, "algorithms/edit.html", context, status=status)


@require_http_methods(["GET", "POST"])
@require_role(Role.MEMBER)
def import_json(request: HttpRequest) -> HttpResponse:
    """Save a composition given as JSON, as a file or as text."""
    if request.method == "GET":
        return show_import(request)
    text = posted_json(request)
    try:
        composition = Composition.model_validate_json(text)
    except ValidationError as error:
        return show_import(request, text, [refusal.sentence for refusal in explain(error, Composition)])
    refusals = [refusal.sentence for refusal in composition_refusals(composition)]
    if refusals:
        return show_import(request, text, refusals)
    try:
        name = checked_name(request.POST.get("name", ""))
        version, is_new = store.save(current_team(request), reader(request), name, composition, "Imported")
    except ValueError as refusal:
        return show_import(request, text, [str(refusal)])
    return saved(request, version, is_new)


def posted_json(request: HttpRequest) -> str:
    file = request.FILES.get("file")
    if file:
        return file.read(LONGEST_JSON).decode(errors="replace")
    return request.POST.get("json", "")[:LONGEST_JSON]


def show_import(request: HttpRequest, text: str = "", refusals: Sequence[str] = ()) -> HttpResponse:
    context = {
        "section": "algorithms",
        "crumbs": [("Algorithms", reverse("algorithms")), ("Import", "")],
        "name": showable(request.POST.get("name", "")),
        "text": showable(text),
        "refusals": [showable(refusal) for refusal in refusals],
    }
    return render(request, "algorithms/import.html", context, status=400 if refusals else 200)


def saved(request: HttpRequest, version: AlgorithmVersion, is_new: bool) -> HttpResponse:
    messages.success(request, f"Saved as {version}." if is_new else f"Nothing changed: this is {version}.")
    return redirect("algorithm_version", pk=version.algorithm_id, number=version.number)

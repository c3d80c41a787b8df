"""The list of algorithms, and one of them in words."""

from django.contrib import messages
from django.db.models import Count, Prefetch
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST
from vantage_trainer.composition import Algorithm as Composition
from vantage_trainer.presets import PRESETS, Preset

from vantage.algorithms import store
from vantage.algorithms.describe import differences, in_short, parts
from vantage.algorithms.explaining import board
from vantage.algorithms.formula.objective import formula
from vantage.algorithms.models import Algorithm, AlgorithmVersion
from vantage.algorithms.spoken import not_yet
from vantage.numbers import whole
from vantage.teams.access import can, current_team, found, may, reader
from vantage.teams.models import Role
from vantage.text import showable

COMPARED_WITH = "grpo"


@require_GET
def algorithms(request: HttpRequest) -> HttpResponse:
    """The team's own algorithms, then the presets."""
    team = current_team(request)
    newest_first = Prefetch("versions", AlgorithmVersion.objects.order_by("-number"))
    mine = Algorithm.objects.visible_to(reader(request)).filter(team=team).prefetch_related(newest_first)
    deleted = Algorithm.objects.deleted_of(reader(request)).filter(team=team).order_by("-deleted")
    gone = request.GET.get("deleted", "")
    context = {
        "section": "algorithms",
        "own": [own_line(algorithm) for algorithm in mine.annotate(num_versions=Count("versions")).order_by("name")],
        "presets": [(preset, in_short(preset.algorithm), not_yet(preset.algorithm)) for preset in PRESETS.values()],
        "deleted": deleted[:50],
        "just_deleted": deleted.filter(pk=whole(gone)).first(),
        "creates": can(request, team, Role.MEMBER),
    }
    return render(request, "algorithms/list.html", context)


def own_line(algorithm: Algorithm) -> tuple[Algorithm, AlgorithmVersion, list[str]]:
    newest = algorithm.versions.all()[0]
    return algorithm, newest, in_short(newest.parts)


@require_GET
def preset(request: HttpRequest, name: str) -> HttpResponse:
    shown = found_preset(name)
    context = {
        "title": shown.title,
        "reference": name,
        "preset": shown,
        "json_url": reverse("preset_json", args=[name]),
        "creates": can(request, current_team(request), Role.MEMBER),
    }
    return show(request, shown.algorithm, context)


@require_GET
def algorithm(request: HttpRequest, pk: int, number: int | None = None) -> HttpResponse:
    """One version of an own algorithm, the newest unless a number is given."""
    own = found(Algorithm, request, pk=pk)
    versions = list(own.versions.order_by("-number").select_related("author"))
    version = next((v for v in versions if v.number == number), None) if number is not None else versions[0]
    if version is None:
        raise Http404
    context = {
        "title": str(version),
        "reference": str(version),
        "algorithm": own,
        "version": version,
        "note": showable(version.note),
        "versions": versions,
        "json_url": reverse("algorithm_json", args=[pk, version.number]),
        "creates": can(request, own.team, Role.MEMBER),
    }
    return show(request, version.parts, context)


def show(request: HttpRequest, composition: Composition, context: dict[str, object]) -> HttpResponse:
    """The page of any composition: parts in words, and the difference from another."""
    against = request.GET.get("against") or default_comparison(context)
    team = current_team(request)
    try:
        compared, unknown = store.find(team, against), ""
    except ValueError as refusal:
        compared, unknown = composition, str(refusal)
    context |= {
        "section": "algorithms",
        "crumbs": [("Algorithms", reverse("algorithms")), (context["title"], "")],
        "formula": formula(composition),
        **board([str(context["reference"])], request.GET),
        "parts": parts(composition),
        "refusals": not_yet(composition),
        "against": against,
        "against_title": PRESETS[against].title if against in PRESETS else showable(against),
        "unknown": showable(unknown),
        "differences": differences(composition, compared),
        "choices": store.choices(team),
    }
    return render(request, "algorithms/algorithm.html", context)


def default_comparison(context: dict[str, object]) -> str:
    """GRPO; for GRPO itself what it is most often confused with; for an own version the one before it."""
    version = context.get("version")
    if isinstance(version, AlgorithmVersion) and version.number > 1:
        return f"{version.algorithm.name}@{version.number - 1}"
    return "dr_grpo" if context["reference"] == COMPARED_WITH else COMPARED_WITH


@require_GET
def preset_json(request: HttpRequest, name: str) -> HttpResponse:
    return as_json(found_preset(name).algorithm, name)


@require_GET
def algorithm_json(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    version = found(AlgorithmVersion, request, algorithm=pk, number=number)
    return as_json(version.parts, f"{version.algorithm.name}-{number}")


def as_json(composition: Composition, name: str) -> HttpResponse:
    """A composition as the trainer's commands read it, as a file."""
    response = JsonResponse(composition.model_dump(mode="json"), json_dumps_params={"indent": 2})
    response["Content-Disposition"] = f'attachment; filename="{name}.json"'
    return response


def found_preset(name: str) -> Preset:
    if name not in PRESETS:
        raise Http404
    return PRESETS[name]


@require_POST
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    gone = found(Algorithm, request, pk=pk)
    may(request, gone.team, Role.MEMBER)
    store.delete(gone, reader(request))
    return redirect(f"{reverse('algorithms')}?deleted={gone.pk}")


@require_POST
def restore(request: HttpRequest, pk: int) -> HttpResponse:
    gone = get_object_or_404(Algorithm.objects.deleted_of(reader(request)), pk=pk)
    may(request, gone.team, Role.MEMBER)
    try:
        store.restore(gone, reader(request))
    except ValueError as refusal:
        messages.error(request, str(refusal))
        return redirect("algorithms")
    messages.success(request, f"{gone.name} is back.")
    return redirect("algorithm", pk=gone.pk)

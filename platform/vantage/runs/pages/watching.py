"""A run's page: its header, its charts, and what an open page asks for when there is news."""

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.cache import patch_cache_control
from django.views.decorators.http import require_GET

from vantage.runs.charts import QUESTIONS
from vantage.runs.figures import AXIS_TITLES
from vantage.runs.models import Run
from vantage.runs.overview import overview
from vantage.runs.pages.own import own_run
from vantage.runs.queue_view import place_of
from vantage.runs.reading import AXES, Asked, csv_of, figures, shown_charts, wants_superseded
from vantage.runs.resumes import resumes_of
from vantage.runs.resuming import is_resumable, prospect, whereabouts
from vantage.runs.states import ACTIVE, OVER, Status
from vantage.teams.access import can, reader
from vantage.teams.models import Role

TABS = (
    ("run", "Charts"),
    ("run_samples", "Samples"),
    ("run_objective", "Objective"),
    ("run_events", "Events"),
    ("run_log", "Log"),
    ("run_checkpoints", "Checkpoints"),
    ("run_configuration", "Configuration"),
)
SMOOTHINGS = (("0", "None"), ("0.01", "Light"), ("0.03", "Medium"), ("0.1", "Strong"))


def head_of(request: HttpRequest, run: Run, tab: str) -> dict[str, object]:
    """What every tab of a run shows above itself."""
    may_resume = is_resumable(run)
    return {
        "section": "runs",
        "run": run,
        "overview": overview(run),
        "tabs": TABS,
        "tab": tab,
        "may_change": can(request, run.team, Role.MEMBER),
        "can_stop": run.status not in (*OVER, Status.STOPPING),
        "may_delete": run.status not in ACTIVE,
        "is_over": run.status in OVER,
        "may_resume": may_resume,
        "parent": Run.objects.visible_to(reader(request)).filter(pk=run.parent_id).first(),
        "forks": Run.objects.visible_to(reader(request))
        .training()
        .filter(parent=run)
        .exclude(parent_step=None)
        .order_by("pk"),
        "prospect": prospect(run) if may_resume else None,
        "whereabouts": whereabouts(run),
        "resumes": resumes_of(run),
        "queued": place_of(run),
    }


@require_GET
def run(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a run's charts; the address holds axis and smoothing."""
    shown_run = own_run(request, pk)
    charts = shown_charts(shown_run)
    groups = [
        (question, [shown for shown in charts if shown.chart.question == question.slug]) for question in QUESTIONS
    ]
    context = head_of(request, shown_run, "run") | {
        "groups": [group for group in groups if group[1]],
        "axes": [(axis, title.split(" (")[0]) for axis, title in AXIS_TITLES.items()],
        "axis": AXES.get(request.GET.get("x", ""), "step"),
        "smoothings": SMOOTHINGS,
        "smoothing": request.GET.get("smooth", "0"),
        "superseded": wants_superseded(request.GET),
        "has_superseded": shown_run.attempts.exclude(superseded_after=None).exists(),
    }
    return render(request, "runs/charts.html", context)


@require_GET
def head(request: HttpRequest, pk: int) -> HttpResponse:
    """The header alone, for a page that is open."""
    one = own_run(request, pk)
    response = render(request, "runs/head.html", head_of(request, one, request.GET.get("tab", "run")))
    patch_cache_control(response, no_store=True)
    return response


@require_GET
def chart_data(request: HttpRequest, pk: int) -> JsonResponse:
    """The asked charts as figures; what isn't finite is null, so that this is standard JSON."""
    one = own_run(request, pk)
    answer = {"attempt": one.attempt, "figures": figures(one, Asked.of(request.GET))}
    response = JsonResponse(answer, json_dumps_params={"allow_nan": False})
    patch_cache_control(response, no_store=True)
    return response


@require_GET
def chart_csv(request: HttpRequest, pk: int, slug: str) -> HttpResponse:
    """Every point of a chart as a file."""
    one = own_run(request, pk)
    shown = next((shown for shown in shown_charts(one) if shown.chart.slug == slug), None)
    if shown is None:
        raise Http404("This run has no such chart.")
    axis = AXES.get(request.GET.get("x", ""), "step")
    text = csv_of(one, shown, axis, superseded=wants_superseded(request.GET))
    response = HttpResponse(text, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="run-{one.pk}-{slug}.csv"'
    return response

"""A step of a run in the view of its algorithm: formula, curves, and the tokens as the trust region left them."""

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import patch_cache_control
from django.views.decorators.http import require_GET
from vantage_trainer.spec import RunSpec

from vantage.algorithms.charts import CHARTS
from vantage.algorithms.explaining import LARGEST_GROUP, Explained, Sizes, shown, warm
from vantage.algorithms.formula.objective import formula
from vantage.numbers import whole
from vantage.runs.browsing import samples_of
from vantage.runs.models import Run, Sample
from vantage.runs.pages.own import own_run
from vantage.runs.pages.watching import head_of
from vantage.runs.step_export import exported
from vantage.runs.step_tokens import inspected, steps_inspected


@require_GET
def objective(request: HttpRequest, pk: int) -> HttpResponse:
    """?step=12: the newest step with tokens unless another is named."""
    run = own_run(request, pk)
    spec, steps = RunSpec.model_validate(run.spec), steps_inspected(run)
    wanted = whole(request.GET.get("step", ""), 2**31 - 1)
    step = wanted if wanted in steps else (steps[-1] if steps else None)
    warm()
    context = head_of(request, run, "run_objective") | {
        "formula": formula(spec.algorithm, spec.rollout.response_limit),
        "explain_url": reverse("run_explained", args=[pk]),
        "charts": CHARTS,
        "sizes": sizes_of(spec),
        "steps": steps,
        "step": step,
        "answers": inspected(of_step(run, step), spec.algorithm) if step is not None else [],
    }
    return render(request, "runs/objective.html", context)


def sizes_of(spec: RunSpec) -> Sizes:
    return Sizes(min(max(spec.rollout.group_size, 2), LARGEST_GROUP), spec.rollout.response_limit)


def of_step(run: Run, step: int) -> list[Sample]:
    return list(samples_of(run, step).order_by("group", "index"))


@require_GET
def explained(request: HttpRequest, pk: int) -> JsonResponse:
    """The formula and curves of the run's algorithm, for sizes that may be changed on the page."""
    run = own_run(request, pk)
    spec = RunSpec.model_validate(run.spec)
    one = Explained(run.name, spec.algorithm, spec.rollout.response_limit)
    response = JsonResponse(shown([one], Sizes.of(request.GET)))
    patch_cache_control(response, no_store=True)
    return response


@require_GET
def batch(request: HttpRequest, pk: int, step: int) -> HttpResponse:
    """The step as a file for the command line."""
    run = own_run(request, pk)
    samples = of_step(run, step) if step < 2**31 else []
    if not samples:
        raise Http404("This run has no samples of that step.")
    content = exported(samples, RunSpec.model_validate(run.spec))
    response = JsonResponse(content, json_dumps_params={"allow_nan": False})
    response["Content-Disposition"] = f'attachment; filename="run-{pk}-step-{step}.json"'
    return response

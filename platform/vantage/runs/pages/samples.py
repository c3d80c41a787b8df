"""Samples of a run: the answers of a step side by side, and one answer in full."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from vantage.runs.browsing import FOLD_AFTER, SampleWish, groups_of, histogram, samples_of, steps_of, wished
from vantage.runs.models import Run, Sample
from vantage.runs.pages.own import own_run, own_work
from vantage.runs.pages.watching import head_of
from vantage.teams.access import found
from vantage.text import showable

CHART = (240, 40)  # width and height of the reward histogram
TITLES = {"": "All", "correct": "Correct", "wrong": "Wrong", "cut": "Cut at the limit", "unscored": "Not scored"}


@require_GET
def samples(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the samples of one step by group; the newest step unless the address names another."""
    run = own_run(request, pk)
    return render(request, "runs/samples.html", head_of(request, run, "run_samples") | shown_samples(request, run))


def shown_samples(request: HttpRequest, run: Run) -> dict[str, object]:
    """The answers that the address asks for, of a run or of a job."""
    wish, steps = SampleWish.of(request.GET), steps_of(run)
    step = wish.step if wish.step in steps else (steps[-1] if steps else None)
    context: dict[str, object] = {"wish": wish, "steps": steps, "step": step, "filters": TITLES}
    if step is not None:
        all_of_step = samples_of(run, step)
        chosen = wished(all_of_step, wish)
        groups, num_pages = groups_of(chosen, all_of_step, wish.page)
        place = steps.index(step)
        context |= {
            "groups": groups,
            "num": chosen.count(),
            "pages": range(1, num_pages + 1),
            "page": min(max(wish.page, 1), num_pages),
            "bins": histogram(chosen, *CHART),
            "chart": CHART,
            "fold_after": FOLD_AFTER,
            "before": steps[place - 1] if place else None,
            "after": steps[place + 1] if place + 1 < len(steps) else None,
        }
    return context


@require_GET
def sample_text(request: HttpRequest, pk: int, sample: int) -> HttpResponse:
    """The whole of one answer as plain text: nothing in it can be anything else."""
    run = own_work(request, pk)
    one = found(Sample, request, pk=sample, run=run)
    response = HttpResponse(showable(one.text), content_type="text/plain; charset=utf-8")
    response["X-Content-Type-Options"] = "nosniff"
    return response

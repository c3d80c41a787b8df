"""The form of a re-score: a run's reward to edit, applied to the completions it has stored."""

from uuid import uuid4

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods
from vantage_trainer.jobspec import RescoreSpec
from vantage_trainer.spec import Reward, RunSpec

from vantage.algorithms.spoken import spoken
from vantage.algorithms.words import WORDS
from vantage.forms_from_schema import FormField, bind, form
from vantage.runs.create import AlreadyLaunched, Refused
from vantage.runs.jobs import create_job
from vantage.runs.launch_token import launch_token
from vantage.runs.models import Run, Sample
from vantage.runs.pages.own import own_run
from vantage.teams.access import may, reader
from vantage.teams.models import Role


@require_http_methods(["GET", "POST"])
def rescore(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the run's reward to edit; posted whole, score its completions with it."""
    run = own_run(request, pk)
    may(request, run.team, Role.MEMBER)
    spec = RunSpec.model_validate(run.spec)
    if request.method == "GET":
        return _show(request, run, form(Reward, spec.reward, words=WORDS))
    bound = bind(Reward, {name: request.POST[name] for name in request.POST}, base=spec.reward, words=WORDS)
    if bound.value is None:
        return _show(request, run, bound.root, status=200 if bound.reshaped else 400)
    try:
        wanted = RescoreSpec(run=spec, reward=bound.value)
        job = create_job(run.team, reader(request), wanted, parent=run, token=launch_token(request.POST))
    except AlreadyLaunched as repeated:
        return redirect("job", pk=repeated.run.pk)
    except Refused as refused:
        beside: dict[str, list[str]] = {}
        for refusal in refused.refusals:
            beside.setdefault(refusal.path.removeprefix("reward."), []).append(spoken(refusal.sentence))
        return _show(request, run, bound.with_errors(beside).root, status=400)
    return redirect("job", pk=job.pk)


def _show(request: HttpRequest, run: Run, root: FormField, status: int = 200) -> HttpResponse:
    context = {
        "section": "runs",
        "crumbs": [("Runs", reverse("runs")), (run.name, reverse("run", args=[run.pk])), ("Score again", "")],
        "run": run,
        "root": root,
        "num": Sample.objects.filter(run=run).count(),
        "token": uuid4(),
    }
    return render(request, "runs/rescore.html", context, status=status)

"""Start a job: the form of an evaluation, the button of an export."""

from uuid import uuid4

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST
from vantage_trainer.jobspec import EvaluateSpec, ExportSpec
from vantage_trainer.spec import RunSpec

from vantage.algorithms.words import WORDS
from vantage.forms_from_schema import Bound, bind, form
from vantage.numbers import whole
from vantage.runs.create import AlreadyLaunched, Refused
from vantage.runs.drafting import choices_of, versions_of
from vantage.runs.jobs import create_job, kept_checkpoint
from vantage.runs.kinds.evaluate import draft_for
from vantage.runs.launch_token import launch_token
from vantage.runs.models import Run
from vantage.runs.pages.launching import by_path, typed
from vantage.runs.pages.own import own_run
from vantage.runs.tidying import clean_name
from vantage.teams.access import current_team, may, reader, require_role
from vantage.teams.models import Role

EVALUATE_PARTS = ("sets", "rollout.response_limit", "rollout.top_p", "rollout.top_k", "seed")
MODEL_PARTS = (
    "model.source",
    "model.name",
    "model.dtype",
    "model.chat_template",
    "model.system_prompt",
    "reward.parts",
)


@require_http_methods(["GET", "POST"])
@require_role(Role.MEMBER)
def evaluate_new(request: HttpRequest) -> HttpResponse:
    """Show the form of an evaluation; its button starts it, any other POST shows the form again."""
    team, parent, checkpoint = current_team(request), _parent(request), _checkpoint(request)
    if parent is not None:
        team = parent.team
        may(request, team, Role.MEMBER)
    base = draft_for(parent, checkpoint)
    choices = {"sets.*.dataset": choices_of(versions_of(team))["data.train"]}
    bound: Bound[EvaluateSpec] | None = None
    if request.method == "POST":
        bound = bind(EvaluateSpec, typed(request), base=base, choices=choices, words=WORDS)
    if bound is not None and bound.value is not None and "start" in request.POST:
        name = clean_name(request.POST.get("job_name", ""))
        token = launch_token(request.POST)
        try:
            return redirect(create_job(team, reader(request), bound.value, name=name, parent=parent, token=token))
        except AlreadyLaunched as repeated:
            return redirect(repeated.run)
        except Refused as refused:
            bound = bound.with_errors(by_path(refused.refusals))
    root = bound.root if bound else form(EvaluateSpec, base, choices=choices, words=WORDS)
    wrong = bound is not None and not bound.reshaped and bound.value is None
    parts = EVALUATE_PARTS if checkpoint else (*MODEL_PARTS, "reward.parts", "data.prompt_limit", *EVALUATE_PARTS)
    context = {
        "section": "runs",
        "crumbs": [("Runs", "/runs/"), ("Jobs", "/jobs/"), ("New evaluation", "")],
        "root": root,
        "fields": [root.get(path) for path in parts],
        "parent": parent,
        "checkpoint": checkpoint,
        "is_refused": wrong,
        "token": uuid4(),
        "job_name": request.POST.get("job_name", ""),
    }
    return render(request, "runs/job_new_evaluate.html", context, status=400 if wrong else 200)


@require_POST
def export_start(request: HttpRequest, pk: int) -> HttpResponse:
    """Start the export of one of the run's checkpoints."""
    run = own_run(request, pk)
    may(request, run.team, Role.MEMBER)
    name = request.POST.get("checkpoint", "")
    if kept_checkpoint(run, name) is None:
        messages.warning(request, "That checkpoint is not kept any more: choose another one.")
        return redirect("run_checkpoints", pk=run.pk)
    spec = ExportSpec(checkpoint=name, model=RunSpec.model_validate(run.spec).model)
    try:
        return redirect(create_job(run.team, reader(request), spec, parent=run))
    except Refused as refused:
        messages.warning(request, str(refused))
        return redirect("run_checkpoints", pk=run.pk)


def _parent(request: HttpRequest) -> Run | None:
    pk = whole(request.POST.get("from", "") or request.GET.get("from", ""))
    return None if pk is None else own_run(request, pk)


def _checkpoint(request: HttpRequest) -> str:
    """The checkpoint's name; one that cannot be is as none, and the form then asks for a model."""
    name = request.POST.get("checkpoint", "") or request.GET.get("checkpoint", "")
    stage, _, step = name.partition("-")
    known = stage in ("step", "start") and step.isascii() and step.isdecimal() and len(step) < 10
    return name if known else ""

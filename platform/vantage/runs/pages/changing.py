"""What a person does to one run: stop it, resume it, rename it, tag it, note something."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from vantage.runs import resuming
from vantage.runs.models import Run
from vantage.runs.pages.own import own_run
from vantage.runs.stopping import stop_run
from vantage.runs.tidying import clean_name, clean_tags
from vantage.teams.access import may, reader
from vantage.teams.audit import record
from vantage.teams.models import Role


@require_POST
def stop(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask the run to stop: it writes a checkpoint and ends within seconds."""
    run = own_run(request, pk)
    may(request, run.team, Role.MEMBER)
    if stop_run(run, reader(request)):
        record(run.team, reader(request), "stopped run", str(run))
        messages.success(request, "Asked to stop: it writes a checkpoint and ends within seconds.")
    else:
        messages.info(request, "It had ended already.")
    return redirect("run", pk=run.pk)


@require_POST
def resume(request: HttpRequest, pk: int) -> HttpResponse:
    """Queue a run that has ended again, from its last checkpoint."""
    run = own_run(request, pk)
    may(request, run.team, Role.MEMBER)
    found = resuming.prospect(run)
    if found is None and resuming.is_resumable(run):
        messages.warning(request, "There is no checkpoint to go on from: clone the run to begin again.")
    elif found is not None and resuming.resume(run):
        record(run.team, reader(request), "resumed run", str(run))
        messages.success(request, f"Queued. {found.sentence}")
    else:
        messages.info(request, "It waits or works already, or has reached its end.")
    return redirect("run", pk=run.pk)


@require_POST
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    """Change name, tags and notes, those that were sent."""
    run = own_run(request, pk)
    may(request, run.team, Role.MEMBER)
    wanted = changes_in(request)
    if wanted:
        Run.objects.filter(pk=run.pk).update(**wanted)
        record(run.team, reader(request), "edited run", str(run))
        messages.success(request, "Saved.")
    return redirect("run", pk=run.pk)


def changes_in(request: HttpRequest) -> dict[str, object]:
    wanted: dict[str, object] = {}
    if name := clean_name(request.POST.get("name", "")):
        wanted["name"] = name
    if "tags" in request.POST:
        wanted["tags"] = clean_tags(request.POST["tags"].split(","))
    if "notes" in request.POST:
        wanted["notes"] = request.POST["notes"]
    return wanted

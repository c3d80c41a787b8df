"""Jobs: the team's list, the page of one, and what can be done to it."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from vantage.runs.archive import size_of, tar_of
from vantage.runs.folder import RunFolder
from vantage.runs.job_progress import phase_of_job
from vantage.runs.jobs import KINDS, jobs_visible_to, try_again
from vantage.runs.models import Event, LogTail, Run
from vantage.runs.pages.own import own_job
from vantage.runs.pages.samples import shown_samples
from vantage.runs.queue_view import place_of
from vantage.runs.resuming import whereabouts
from vantage.runs.states import OVER, TRANSITIONS, Status
from vantage.runs.stopping import stop_run
from vantage.teams.access import can, current_team, may, reader
from vantage.teams.audit import record
from vantage.teams.models import Role

MOST = 200  # jobs of the list, events of a page


@require_GET
def jobs(request: HttpRequest) -> HttpResponse:
    """The team's jobs, newest first."""
    team = current_team(request)
    rows = jobs_visible_to(reader(request)).filter(team=team).select_related("parent", "created_by", "node")
    context = {"section": "runs", "jobs": rows.order_by("-pk")[:MOST], "may_change": can(request, team, Role.MEMBER)}
    return render(request, "runs/jobs.html", context | {"crumbs": [("Runs", "/runs/"), ("Jobs", "")]})


@require_GET
def job(request: HttpRequest, pk: int) -> HttpResponse:
    return render(request, "runs/job.html", page_of(request, own_job(request, pk)))


def page_of(request: HttpRequest, one: Run) -> dict[str, object]:
    """Everything that the page of a job shows."""
    kind = KINDS[one.kind]
    parent = Run.objects.visible_to(reader(request)).filter(pk=one.parent_id).first()
    crumbs = [(parent.name, parent.get_absolute_url())] if parent else [("Jobs", "/jobs/")]
    events = Event.objects.filter(run=one).exclude(kind="result").order_by("-attempt", "-seq")
    return kind.result(one) | {
        "section": "runs",
        "crumbs": [("Runs", "/runs/"), *crumbs, (f"#{one.number}", "")],
        "run": one,
        "kind": kind,
        "result_templates": [f"runs/job_{one.kind}.html", "runs/job_result.html"],
        "parent": parent,
        "phase": phase_of_job(one),
        "queued": place_of(one),
        "whereabouts": whereabouts(one),
        "is_over": one.status in OVER,
        "may_change": can(request, one.team, Role.MEMBER),
        "can_stop": one.status not in (*OVER, Status.STOPPING),
        "may_try_again": one.status in TRANSITIONS["resume"][0],
        "events": events[:MOST],
        "attempts": one.attempts.select_related("node").order_by("-number"),
        "tails": LogTail.objects.filter(attempt__run=one).select_related("attempt").order_by("-attempt__number")[:1],
    }


@require_POST
def stop(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask the job to stop; what it has told stays."""
    one = own_job(request, pk)
    may(request, one.team, Role.MEMBER)
    if stop_run(one, reader(request)):
        record(one.team, reader(request), "stopped job", str(one))
        messages.success(request, "Asked to stop: it ends within seconds.")
    else:
        messages.info(request, "It had ended already.")
    return redirect(one)


@require_POST
def again(request: HttpRequest, pk: int) -> HttpResponse:
    """Queue a job that did not reach its end once more."""
    one = own_job(request, pk)
    may(request, one.team, Role.MEMBER)
    if try_again(one):
        record(one.team, reader(request), "tried job again", str(one))
        messages.success(request, "Queued again: it starts from its beginning.")
    else:
        messages.info(request, "It waits or works already, or has reached its end.")
    return redirect(one)


@require_GET
def samples(request: HttpRequest, pk: int) -> HttpResponse:
    """The answers of an evaluation, one set at a time."""
    one = own_job(request, pk)
    context = page_of(request, one) | shown_samples(request, one)
    names = [part["name"] for part in one.spec.get("sets", [])]
    return render(request, "runs/job_samples.html", context | {"set_names": list(enumerate(names))})


@require_GET
def chart_data(request: HttpRequest, pk: int) -> JsonResponse:
    one = own_job(request, pk)
    return JsonResponse({"attempt": one.attempt, "figures": KINDS[one.kind].figures(one)})


@require_GET
def download(request: HttpRequest, pk: int) -> StreamingHttpResponse:
    """The files that a job made, as a tar; 404 with a sentence where they lie on another machine."""
    one = own_job(request, pk)
    output = RunFolder.of(one.pk).output
    if one.status != Status.SUCCEEDED or not output.is_dir():
        raise Http404("The files of this job are not on this machine: its page says on which node they lie.")
    name = f"{one.kind}-{one.number}"
    headers = {"Content-Disposition": f'attachment; filename="{name}.tar"', "Content-Length": str(size_of(output))}
    return StreamingHttpResponse(tar_of(output, name), content_type="application/x-tar", headers=headers)

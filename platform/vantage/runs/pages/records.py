"""What a run wrote down: events, log, checkpoints, configuration."""

import json

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from vantage.runs.configuration import sections
from vantage.runs.jobs import jobs_of
from vantage.runs.models import Event, LogTail
from vantage.runs.pages.own import own_run
from vantage.runs.pages.watching import head_of

MOST_EVENTS = 500
QUIET = ("phase", "sync")  # kinds that are shown on demand: there are many, and they say little


@require_GET
def events(request: HttpRequest, pk: int) -> HttpResponse:
    run = own_run(request, pk)
    rows = Event.objects.filter(run=run).order_by("-attempt", "-seq")
    if not request.GET.get("all"):
        rows = rows.exclude(kind__in=QUIET)
    context = head_of(request, run, "run_events") | {
        "events": rows[:MOST_EVENTS],
        "shows_all": bool(request.GET.get("all")),
        "attempts": run.attempts.select_related("node").order_by("-number"),
    }
    return render(request, "runs/events.html", context)


@require_GET
def log(request: HttpRequest, pk: int) -> HttpResponse:
    """The end of each attempt's log, newest attempt first."""
    run = own_run(request, pk)
    tails = LogTail.objects.filter(attempt__run=run).select_related("attempt").order_by("-attempt__number")
    return render(request, "runs/log.html", head_of(request, run, "run_log") | {"tails": tails})


@require_GET
def checkpoints(request: HttpRequest, pk: int) -> HttpResponse:
    run = own_run(request, pk)
    rows = run.checkpoints.order_by("-step", "-attempt")
    context = {"checkpoints": rows, "jobs": jobs_of(run).select_related("created_by", "node")}
    return render(request, "runs/checkpoints.html", head_of(request, run, "run_checkpoints") | context)


@require_GET
def configuration(request: HttpRequest, pk: int) -> HttpResponse:
    """The resolved spec: to read, or as the JSON that the trainer was given."""
    run = own_run(request, pk)
    if request.GET.get("format") == "json":
        text = json.dumps(run.spec, indent=2)
        response = HttpResponse(text, content_type="application/json")
        response["Content-Disposition"] = f'attachment; filename="run-{run.pk}-spec.json"'
        return response
    context = head_of(request, run, "run_configuration") | {"sections": sections(run.spec)}
    return render(request, "runs/configuration.html", context)

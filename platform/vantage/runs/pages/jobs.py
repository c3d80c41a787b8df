"""A job's page: how it stands, and what it found."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from vantage.runs.jobs import KINDS
from vantage.runs.pages.own import own_job
from vantage.teams.access import can
from vantage.teams.models import Role


@require_GET
def job(request: HttpRequest, pk: int) -> HttpResponse:
    run = own_job(request, pk)
    context = {
        "section": "runs",
        "crumbs": [("Runs", reverse("runs")), (run.name, "")],
        "run": run,
        "kind": KINDS[run.kind],
        "may_change": can(request, run.team, Role.MEMBER),
        "part": f"runs/job_{run.kind}.html",
    }
    return render(request, "runs/job.html", context | KINDS[run.kind].result(run))

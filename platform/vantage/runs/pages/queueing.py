"""Changes to the queue: members order their own waiting runs, admins any of their team's."""

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from vantage.runs.models import Run
from vantage.runs.pages.own import own_work
from vantage.runs.queue_changes import PRIORITIES, move_to_front, set_priority
from vantage.teams.access import can, may, reader
from vantage.teams.models import Role

STARTED = "It waits no more."


@require_POST
def priority(request: HttpRequest, pk: int) -> HttpResponse:
    """Give a waiting run one of the named priorities."""
    run = _orderable(request, pk)
    names = {str(number): name for number, name in PRIORITIES}
    chosen = request.POST.get(f"priority-{pk}", "")
    if chosen not in names:
        messages.warning(request, f"Choose one of the priorities {', '.join(names.values())}.")
    elif set_priority(run, int(chosen), reader(request)):
        messages.success(request, f"{run.name} waits with priority {names[chosen].lower()}.")
    elif not Run.objects.filter(pk=pk, priority=int(chosen)).exists():
        messages.info(request, STARTED)
    return redirect("nodes")


@require_POST
def front(request: HttpRequest, pk: int) -> HttpResponse:
    """Let a waiting run go before all others of its team."""
    run = _orderable(request, pk)
    if move_to_front(run, reader(request)):
        messages.success(request, f"{run.name} goes before the other runs of {run.team}.")
    else:
        messages.info(request, "It goes first already, or waits no more.")
    return redirect("nodes")


def may_order(request: HttpRequest, run: Run) -> bool:
    """Whether the reader may change the run's place in the queue."""
    own = run.created_by_id == reader(request).pk and can(request, run.team, Role.MEMBER)
    return own or can(request, run.team, Role.ADMIN)


def _orderable(request: HttpRequest, pk: int) -> Run:
    run = own_work(request, pk)
    may(request, run.team, Role.MEMBER)
    if not may_order(request, run):
        raise PermissionDenied(
            "Members order the runs that they launched; ask who launched this one, or an admin of the team."
        )
    return run

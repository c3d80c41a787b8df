"""Pause a node, let it take runs again, take a silent one off the page; nodes serve all teams, so admins do it."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from vantage.nodes.models import Node
from vantage.runs.silence import lose_runs_of
from vantage.runs.tasks import nudge_nodes
from vantage.teams.access import current_team, reader, require_role
from vantage.teams.audit import record
from vantage.teams.models import Role


@require_POST
@require_role(Role.ADMIN)
def pause(request: HttpRequest, pk: int) -> HttpResponse:
    """Let a node take nothing new; its runs go on to their ends, or if so wished back into the queue."""
    node, sends_back = _node(request, pk), request.POST.get("runs") == "back"
    if Node.objects.filter(pk=pk, removed=None, paused=False).update(paused=True, sends_back=sends_back):
        record(current_team(request), reader(request), "paused node", node.name, sends_back=sends_back)
        then = "write a checkpoint and go back into the queue" if sends_back else "go on to their ends"
        messages.success(request, f"{node.name} takes no new runs; those at work there {then}.")
    return redirect("nodes")


@require_POST
@require_role(Role.ADMIN)
def resume(request: HttpRequest, pk: int) -> HttpResponse:
    node = _node(request, pk)
    if Node.objects.filter(pk=pk, removed=None, paused=True).update(paused=False, sends_back=False):
        record(current_team(request), reader(request), "resumed node", node.name)
        messages.success(request, f"{node.name} takes runs again.")
        nudge_nodes()
    return redirect("nodes")


@require_POST
@require_role(Role.ADMIN)
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    """Take a node that has left or fallen silent off the page; its runs are lost. Started again, it is back."""
    node = _node(request, pk)
    if Node.objects.gone().filter(pk=pk).remove():
        record(current_team(request), reader(request), "removed node", node.name)
        num = lose_runs_of(node)
        lost = (
            f" {num} run{'' if num == 1 else 's'} that it worked on {'is' if num == 1 else 'are'} lost." if num else ""
        )
        messages.success(request, f"{node.name} is removed.{lost}")
    else:
        messages.warning(request, f"{node.name} is at work: end `vantage node` there, or pause it.")
    return redirect("nodes")


def _node(request: HttpRequest, pk: int) -> Node:
    return get_object_or_404(Node.objects.visible_to(reader(request)), pk=pk)

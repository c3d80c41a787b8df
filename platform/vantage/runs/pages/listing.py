"""The table of runs and what can be done to many at once."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_GET, require_POST

from vantage.numbers import whole
from vantage.runs import protecting, tidying
from vantage.runs.models import Run
from vantage.runs.querysets import RunQuerySet
from vantage.runs.states import ACTIVE, Status
from vantage.runs.table import Wish, page_of
from vantage.teams.access import can, current_team, reader, require_role
from vantage.teams.models import Role

COLUMNS = (
    ("name", "Name", ""),
    ("status", "Status", "wide-only"),
    ("", "Algorithm", "wide-only"),
    ("", "Model", "wide-only"),
    ("", "Progress", ""),
    ("reward", "Reward", "num wide-only"),
    ("pass", "Held-out pass@1", "num"),
    ("duration", "Duration", "num wide-only"),
    ("created", "Created", "wide-only"),
    ("", "By", "wide-only"),
    ("", "Tags", "wide-only"),
)


@require_GET
def runs(request: HttpRequest) -> HttpResponse:
    """Show the team's runs; a page that is already open asks for its table alone."""
    team, is_part = current_team(request), "fragment" in request.headers
    wish = Wish.of(request.GET)
    own = Run.objects.visible_to(reader(request)).training().filter(team=team).select_related("created_by")
    page, lines = page_of(own, wish)
    context = {
        "section": "runs",
        "wish": wish,
        "page": page,
        "lines": lines,
        "columns": COLUMNS,
        "statuses": [("active", "At work"), *Status.choices],
        "may_change": can(request, team, Role.MEMBER),
        "undo": [] if is_part else request.session.pop("deleted_runs", []),
    }
    return render(request, "runs/table.html" if is_part else "runs/list.html", context)


@require_POST
@require_role(Role.MEMBER)
def change_many(request: HttpRequest) -> HttpResponse:
    """Delete or tag the chosen runs; ids that are not the reader's own are no ids."""
    ids = [pk for text in request.POST.getlist("run") if (pk := whole(text)) is not None]
    chosen = Run.objects.visible_to(reader(request)).filter(team=current_team(request), pk__in=ids)
    if request.POST.get("act") == "delete":
        delete(request, chosen)
    elif request.POST.get("act") == "tag" and request.POST.get("tag", "").strip():
        num = tidying.tag(chosen, request.POST["tag"].split(","), reader(request))
        messages.success(request, f"{num} run{'' if num == 1 else 's'} tagged.")
    back = request.POST.get("back", "")
    safe = url_has_allowed_host_and_scheme(back, allowed_hosts=None) and back.startswith("/")
    return redirect(back if safe else reverse("runs"))


def delete(request: HttpRequest, chosen: RunQuerySet) -> None:
    """Delete what is at rest and offer to undo it; say what was left because it is at work."""
    busy = chosen.filter(status__in=ACTIVE).count()
    request.session["deleted_runs"] = tidying.delete(chosen.exclude(status__in=ACTIVE), reader(request))
    for waiting in protecting.waiting_on(request.session["deleted_runs"]).select_related("parent"):
        told = (
            f"{waiting.name} waits to begin with what {waiting.parent} left, and still will: stop it if it should not."
        )
        messages.warning(request, told)
    if busy:
        messages.warning(request, f"{busy} at work: stop a run before deleting it.")


@require_POST
@require_role(Role.MEMBER)
def restore_many(request: HttpRequest) -> HttpResponse:
    """Undo a deletion."""
    ids = [pk for text in request.POST.getlist("run") if (pk := whole(text)) is not None]
    gone = Run.objects.deleted_of(reader(request)).filter(team=current_team(request), pk__in=ids)
    num = len(tidying.restore(gone, reader(request)))
    messages.success(request, f"{num} run{'' if num == 1 else 's'} restored.")
    return redirect("runs")

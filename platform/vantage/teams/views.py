"""Logging in by link, and the team's page."""

from django.contrib import messages
from django.contrib.auth import login, update_session_auth_hash
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from vantage.teams import members
from vantage.teams.access import can, current_team, reader, require_role
from vantage.teams.audit import record
from vantage.teams.login import login_link, spend
from vantage.teams.models import Membership, Role
from vantage.text import storable

BACKEND = "django.contrib.auth.backends.ModelBackend"


@login_not_required
@never_cache
@require_GET
def open_login_link(request: HttpRequest, token: str) -> HttpResponse:
    """Log in, go on to ?next=, and leave the link behind; a used or old one explains how to make another."""
    user = spend(token)
    if user is None:
        return render(request, "teams/spent_link.html", status=410)
    login(request, user, backend=BACKEND)
    wanted = request.GET.get("next", "")
    ours = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    return redirect(wanted if ours else "/")


@require_GET
def team(request: HttpRequest) -> HttpResponse:
    return show_team(request)


def show_team(
    request: HttpRequest, *, refusal: str = "", unknown: str = "", link: str = "", link_for: str = ""
) -> HttpResponse:
    """The team's page, with a sentence where something was refused or a link that is shown this once."""
    team = current_team(request)
    context = {
        "section": "team",
        "members": Membership.objects.filter(team=team).select_related("user").order_by("user__username"),
        "audit": team.audit.order_by("-created", "-pk")[:50],
        "roles": Role.choices,
        "manages": can(request, team, Role.ADMIN),
        "refusal": refusal,
        "unknown": unknown,
        "link": request.build_absolute_uri(link) if link else "",
        "link_for": link_for,
    }
    response = render(request, "teams/team.html", context, status=400 if refusal else 200)
    response["Cache-Control"] = "no-store"
    return response


@require_POST
@require_role(Role.ADMIN)
def add_member(request: HttpRequest) -> HttpResponse:
    try:
        role = request.POST.get("role", Role.MEMBER)
        name, is_known = request.POST.get("username", ""), "known" in request.POST
        membership = members.add(current_team(request), reader(request), name, role, is_known=is_known)
    except ValueError as refusal:
        return show_team(request, refusal=str(refusal), unknown=name if isinstance(refusal, members.Unknown) else "")
    return show_link(request, membership)


@require_POST
@require_role(Role.ADMIN)
def make_link(request: HttpRequest, pk: int) -> HttpResponse:
    return show_link(request, get_object_or_404(Membership, team=current_team(request), pk=pk))


def show_link(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show a new link, unless it would open a team that the admin does not manage."""
    user = membership.user
    if not members.may_let_in(reader(request), user):
        messages.info(request, f"{user.username} is in other teams too and logs in as before.")
        return redirect("team")
    record(membership.team, reader(request), "made a login link for", user.username)
    onward = "" if user.has_usable_password() else f"?next={reverse('password')}"
    return show_team(request, link=login_link(user) + onward, link_for=user.username)


@require_POST
@require_role(Role.ADMIN)
def change_member(request: HttpRequest, pk: int) -> HttpResponse:
    """Change a member's role, or remove them."""
    membership = get_object_or_404(Membership, team=current_team(request), pk=pk)
    try:
        if "remove" in request.POST:
            members.remove(membership, reader(request))
            messages.success(request, f"{membership.user.username} was removed.")
        else:
            members.change_role(membership, reader(request), request.POST.get("role", ""))
            messages.success(request, f"{membership.user.username} has a new role.")
    except ValueError as refusal:
        return show_team(request, refusal=str(refusal))
    return redirect("team")


@require_POST
def switch_team(request: HttpRequest) -> HttpResponse:
    """Work in another of one's teams from now on."""
    slug = request.POST.get("team", "")
    request.session["team"] = get_object_or_404(reader(request).visible_teams(), slug=storable(slug)).pk
    return redirect("/")


@require_POST
@require_role(Role.ADMIN)
def new_team(request: HttpRequest) -> HttpResponse:
    """Start another team and work in it."""
    try:
        team = members.found_team(reader(request), request.POST.get("name", ""))
    except ValueError as refusal:
        return show_team(request, refusal=str(refusal))
    request.session["team"] = team.pk
    return redirect("team")


@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def password(request: HttpRequest) -> HttpResponse:
    """Set one's own password; who came by link has none to repeat."""
    user = reader(request)
    kind = PasswordChangeForm if user.has_usable_password() else SetPasswordForm
    form = kind(user, request.POST or None)
    if form.is_valid():
        form.save()
        update_session_auth_hash(request, user)
        messages.success(request, "Your password is set.")
        return redirect("team")
    return render(request, "teams/password.html", {"form": form, "section": "team"})

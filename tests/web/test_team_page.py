"""Admins manage a team, others read it, outsiders find nothing."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from vantage.teams.models import AuditEntry, LoginLink, Membership, Role, Team, User

Clients = Callable[[User], Client]


def membership(user: User) -> Membership:
    return Membership.objects.get(user=user)


def test_everyone_in_a_team_sees_its_members(people: Any, client_of: Clients) -> None:
    page = client_of(people.viewer).get("/team/").content.decode()
    assert all(name in page for name in ("Lab", "ada", "mia", "vic"))
    assert "otto" not in page
    assert "Add a member" not in page


@pytest.mark.parametrize("name", ["viewer", "member"])
def test_only_admins_manage(people: Any, client_of: Clients, name: str) -> None:
    client, pk = client_of(getattr(people, name)), membership(people.admin).pk
    for path in ("/team/new/", "/team/members/", f"/team/members/{pk}/", f"/team/members/{pk}/link/"):
        refused = client.post(path, {"username": "new", "remove": "yes"})
        assert refused.status_code == 403
        assert "only admins may manage the team" in refused.content.decode()
    assert Membership.objects.filter(team=people.team).count() == 3


def test_an_outsider_finds_no_member_of_another_team(people: Any, client_of: Clients) -> None:
    client, pk = client_of(people.outsider), membership(people.member).pk
    assert client.post(f"/team/members/{pk}/", {"remove": "yes"}).status_code == 404
    assert client.post(f"/team/members/{pk}/link/").status_code == 404
    assert client.post("/team/switch/", {"team": "lab"}).status_code == 404


def test_a_new_member_gets_a_link_that_works(people: Any, client_of: Clients) -> None:
    page = client_of(people.admin).post("/team/members/", {"username": " nora ", "role": "member"})
    start = page.content.decode().index("/login/link/")
    path = page.content.decode()[start:].split('"')[0]
    client = Client()
    assert client.get(path)["Location"] == "/team/password/"
    assert "Lab" in client.get("/team/").content.decode()
    assert page["Cache-Control"] == "no-store"


def test_who_is_in_another_team_too_gets_no_link_from_this_one(people: Any, client_of: Clients) -> None:
    client = client_of(people.admin)
    asked = client.post("/team/members/", {"username": "otto", "role": "viewer"})
    assert "I know this account" in asked.content.decode()
    assert not Membership.objects.filter(user=people.outsider, team=people.team).exists()
    client.post("/team/members/", {"username": "otto", "role": "viewer", "known": "on"})
    pk = Membership.objects.get(user=people.outsider, team=people.team).pk
    client.post(f"/team/members/{pk}/link/")
    assert not LoginLink.objects.exists()


@pytest.mark.parametrize(
    ("posted", "sentence"),
    [
        ({"username": "", "role": "member"}, "A username has letters"),
        ({"username": "a b", "role": "member"}, "A username has letters"),
        ({"username": "x" * 151, "role": "member"}, "at most 150"),
        ({"username": "mia", "role": "member"}, "already in this team"),
        ({"username": "nora", "role": "owner"}, "Choose one of the roles"),
    ],
)
def test_a_member_who_cannot_be_added_gets_a_sentence(
    people: Any, client_of: Clients, posted: dict[str, str], sentence: str
) -> None:
    refused = client_of(people.admin).post("/team/members/", posted)
    assert refused.status_code == 400
    assert sentence in refused.content.decode()
    assert User.objects.count() == 4


def test_a_team_keeps_an_admin(people: Any, client_of: Clients) -> None:
    client, pk = client_of(people.admin), membership(people.admin).pk
    for posted in ({"remove": "yes"}, {"role": "viewer"}):
        assert "make somebody else admin first" in client.post(f"/team/members/{pk}/", posted).content.decode()
    assert membership(people.admin).role == Role.ADMIN


def test_a_role_changes_and_a_member_is_removed_and_both_are_on_record(people: Any, client_of: Clients) -> None:
    client = client_of(people.admin)
    client.post(f"/team/members/{membership(people.viewer).pk}/", {"role": "member"})
    assert membership(people.viewer).role == Role.MEMBER
    client.post(f"/team/members/{membership(people.member).pk}/", {"remove": "yes"})
    assert not Membership.objects.filter(user=people.member).exists()
    assert client_of(people.member).get("/team/").status_code == 403
    assert [str(entry) for entry in AuditEntry.objects.order_by("pk")] == [
        "ada changed the role of vic",
        "ada removed member mia",
    ]


def test_somebody_in_two_teams_works_in_one_and_switches(people: Any, client_of: Clients) -> None:
    second = Team.objects.create(name="Annex", slug="annex")
    Membership.objects.create(team=second, user=people.member, role=Role.VIEWER)
    client = client_of(people.member)
    assert "<h1>Lab</h1>" in client.get("/team/").content.decode()
    client.post("/team/switch/", {"team": "annex"})
    assert "<h1>Annex</h1>" in client.get("/team/").content.decode()


def test_an_admin_starts_another_team_that_sees_nothing_of_the_first(people: Any, client_of: Clients) -> None:
    client = client_of(people.admin)
    page = client.post("/team/new/", {"name": "New Lab"}, follow=True).content.decode()
    assert "<h1>New Lab</h1>" in page
    assert "mia" not in page
    assert Membership.objects.get(team__slug="new-lab").role == Role.ADMIN


@pytest.mark.parametrize("name", ["", "!!!", "lab", "Lab", "x" * 101, "a\x00b"])
def test_a_team_that_cannot_be_started_gets_a_sentence(people: Any, client_of: Clients, name: str) -> None:
    refused = client_of(people.admin).post("/team/new/", {"name": name})
    assert refused.status_code == 400
    assert 'role="alert"' in refused.content.decode()
    assert Team.objects.count() == 2


def test_who_has_no_team_is_told_what_to_do(people: Any, client_of: Clients) -> None:
    page = client_of(User.objects.create_user("lone")).get("/team/")
    assert page.status_code == 403
    assert "ask a team&#x27;s admin to add you" in page.content.decode()


def test_an_address_that_is_not_there_gets_a_kind_page(people: Any, client_of: Clients) -> None:
    page = client_of(people.member).get("/nowhere/")
    assert page.status_code == 404
    assert "There is nothing here" in page.content.decode()


def test_a_form_without_its_token_is_refused_in_words(people: Any) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(people.admin)
    page = client.post("/team/members/", {"username": "nora"})
    assert page.status_code == 403
    assert "go back, reload the page" in page.content.decode()

"""A login link works once, for fifteen minutes; everything else asks for a login."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from vantage.teams.login import login_link, spend
from vantage.teams.models import LoginLink, Membership, Role, Team, User
from vantage.teams.setup import ensure_first_team


def test_a_login_link_logs_in_once_and_is_left_behind(people: Any) -> None:
    path = login_link(people.member)
    client, second = Client(), Client()
    opened = client.get(path)
    assert (opened.status_code, opened["Location"]) == (302, "/")
    assert client.session["_auth_user_id"] == str(people.member.pk)
    again = second.get(path)
    assert again.status_code == 410
    assert "vantage login-link" in again.content.decode()
    assert "_auth_user_id" not in second.session


def test_an_old_link_explains_how_to_make_another(people: Any) -> None:
    path = login_link(people.member)
    LoginLink.objects.update(expires=timezone.now() - timedelta(seconds=1))
    assert "vantage login-link" in Client().get(path).content.decode()


def test_a_link_that_never_was_reads_like_a_used_one(people: Any) -> None:
    assert Client().get("/login/link/nonsense").status_code == 410


def test_a_link_does_not_let_in_who_was_switched_off(people: Any) -> None:
    path = login_link(people.member)
    User.objects.filter(pk=people.member.pk).update(is_active=False)
    assert Client().get(path).status_code == 410


def test_only_the_digest_of_a_link_is_stored(people: Any) -> None:
    token = login_link(people.member).rsplit("/", 1)[1]
    assert token not in str(list(LoginLink.objects.values()))


def test_a_link_opened_by_many_at_once_logs_in_once(transactional_db: None) -> None:
    token = login_link(User.objects.create_user("racer")).rsplit("/", 1)[1]

    def opened(_: int) -> bool:
        try:
            return spend(token) is not None
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(opened, range(8))) == 1


def test_the_first_start_makes_an_admin_without_a_password(db: None) -> None:
    user, team = ensure_first_team()
    assert (user.username, user.has_usable_password(), team.name) == ("admin", False, "default")
    assert Membership.objects.get(team=team, user=user).role == Role.ADMIN


def test_the_second_start_finds_what_the_first_made(db: None) -> None:
    assert ensure_first_team() == ensure_first_team()
    assert (User.objects.count(), Team.objects.count()) == (1, 1)


def test_a_username_and_a_password_log_in(people: Any) -> None:
    people.member.set_password("correct horse")
    people.member.save()
    client = Client()
    wrong = client.post("/login/", {"username": "mia", "password": "battery"})
    assert "do not belong together" in wrong.content.decode()
    right = client.post("/login/", {"username": "mia", "password": "correct horse", "next": "/team/"})
    assert right["Location"] == "/team/"


def test_login_never_leads_to_another_site(people: Any) -> None:
    people.member.set_password("correct horse")
    people.member.save()
    posted = {"username": "mia", "password": "correct horse", "next": "https://evil.example/"}
    assert Client().post("/login/", posted)["Location"] == "/"


def test_logging_out_takes_a_post(people: Any, client_of: Callable[[User], Client]) -> None:
    client = client_of(people.member)
    assert client.get("/logout/").status_code == 405
    assert client.post("/logout/").status_code == 302
    assert client.get("/team/")["Location"] == "/login/?next=/team/"


def test_who_came_by_link_sets_a_password_without_repeating_one(
    people: Any, client_of: Callable[[User], Client]
) -> None:
    people.member.set_unusable_password()
    people.member.save()
    client = client_of(User.objects.get(pk=people.member.pk))
    mismatched = client.post("/team/password/", {"new_password1": "long enough", "new_password2": "else"})
    assert mismatched.status_code == 200
    saved = client.post("/team/password/", {"new_password1": "long enough", "new_password2": "long enough"})
    assert saved["Location"] == "/team/"
    assert client.get("/team/").status_code == 200
    assert Client().login(username="mia", password="long enough")


@pytest.mark.parametrize("path", ["/team/", "/team/password/"])
def test_a_stranger_is_asked_to_log_in(db: None, path: str) -> None:
    assert Client().get(path)["Location"] == f"/login/?next={path}"


def test_a_login_link_goes_on_to_a_page_of_this_site_only(people: Any) -> None:
    assert Client().get(f"{login_link(people.member)}?next=/nodes/")["Location"] == "/nodes/"
    assert Client().get(f"{login_link(people.member)}?next=//elsewhere.example/")["Location"] == "/"

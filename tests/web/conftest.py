"""People of two teams, and a logged-in client for each."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from django.test import Client
from vantage.runs.models import Run
from vantage.teams.models import Membership, Role, Team, User


@dataclass(frozen=True)
class People:
    team: Team
    admin: User
    member: User
    viewer: User
    other_team: Team
    outsider: User


def joined(team: Team, username: str, role: str) -> User:
    user = User.objects.create_user(username)
    Membership.objects.create(team=team, user=user, role=role)
    return user


@pytest.fixture
def people(db: None) -> People:
    """One team with an admin, a member and a viewer; an outsider who is admin of another."""
    team = Team.objects.create(name="Lab", slug="lab")
    other = Team.objects.create(name="Elsewhere", slug="elsewhere")
    return People(
        team=team,
        admin=joined(team, "ada", Role.ADMIN),
        member=joined(team, "mia", Role.MEMBER),
        viewer=joined(team, "vic", Role.VIEWER),
        other_team=other,
        outsider=joined(other, "otto", Role.ADMIN),
    )


@pytest.fixture
def client_of() -> Callable[[User], Client]:
    def log_in(user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return log_in


@pytest.fixture
def make_run(people: People) -> Callable[..., Run]:
    def make(**fields: object) -> Run:
        number = Run.objects.count() + 1
        return Run.objects.create(
            **{"team": people.team, "number": number, "name": f"run {number}", "spec": {}} | fields
        )

    return make

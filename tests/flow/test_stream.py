"""One stream per browser: news within a second, to those who may see it, at no connection per stream."""

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Queue
from typing import Any

import httpx
import pytest
from django.db import connection
from django.test import Client
from vantage.runs.announce import announce
from vantage.runs.models import Run
from vantage.runs.states import Status
from vantage.teams.models import Membership, Team, User


@pytest.fixture
def site(service_environment: dict[str, str], settings: Any) -> Iterator[str]:
    listener = socket.create_server(("127.0.0.1", 0))
    command = [sys.executable, "-P", "-m", "vantage.web", "--fd", str(listener.fileno())]
    environment = service_environment | {"VANTAGE_SECRET_KEY": settings.SECRET_KEY}  # sessions are signed with it
    web = subprocess.Popen(command, env=environment, pass_fds=[listener.fileno()])
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    web.terminate()
    assert web.wait(20) is not None


@pytest.fixture
def lab(transactional_db: None) -> Team:
    return Team.objects.create(name="Lab", slug="lab")


def person(name: str, team: Team) -> User:
    user = User.objects.create_user(name)
    Membership.objects.create(team=team, user=user)
    return user


def cookies(user: User) -> dict[str, str]:
    client = Client()
    client.force_login(user)
    return {name: morsel.value for name, morsel in client.cookies.items()}


@contextmanager
def listening(site: str, user: User, **headers: str) -> Iterator["Queue[Any]"]:
    """Read a stream in a thread; the queue gives each event's content, and None at its end."""
    heard: Queue[Any] = Queue()
    opened = threading.Event()
    client = httpx.Client(cookies=cookies(user), timeout=60, trust_env=False)

    def read() -> None:
        try:
            with client.stream("GET", f"{site}/stream", headers=headers) as response:
                if response.status_code != 200:
                    heard.put(response.read())
                for line in response.iter_lines():
                    if line.startswith(": open"):
                        opened.set()
                    if line.startswith("data: "):
                        heard.put(json.loads(line.removeprefix("data: ")))
        except httpx.HTTPError:
            pass
        heard.put(None)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    assert opened.wait(60), list(heard.queue)
    yield heard
    client.close()


def make_run(team: Team, **fields: object) -> Run:
    return Run.objects.create(team=team, number=Run.objects.count() + 1, name="a run", spec={}, **fields)


def test_runs_under_way_are_told_at_once_and_news_within_a_second(site: str, lab: Team) -> None:
    run = make_run(lab, status=Status.RUNNING)
    with listening(site, person("mia", lab)) as heard:
        assert heard.get(timeout=30) == {"run": run.pk, "status": "running", "cursor": {"attempt": 0}}
        Run.objects.update(status=Status.SUCCEEDED)
        begun = time.monotonic()
        announce(run.pk, lab.pk)
        assert heard.get(timeout=30)["status"] == "succeeded"
        assert time.monotonic() - begun < 2


def test_news_come_without_valkeys_message_too(site: str, lab: Team) -> None:
    run = make_run(lab, status=Status.RUNNING)
    with listening(site, person("mia", lab)) as heard:
        heard.get(timeout=30)
        Run.objects.update(status=Status.FAILED)
        assert heard.get(timeout=30) == {"run": run.pk, "status": "failed", "cursor": {"attempt": 0}}


def test_an_outsider_hears_nothing_and_is_shut_out_when_they_leave(site: str, lab: Team) -> None:
    other = Team.objects.create(name="Elsewhere", slug="elsewhere")
    otto, run = person("otto", other), make_run(lab, status=Status.RUNNING)
    with listening(site, otto) as heard:
        announce(run.pk, lab.pk)
        mine = make_run(other, status=Status.QUEUED)
        announce(mine.pk, other.pk)
        assert heard.get(timeout=30)["run"] == mine.pk
        Membership.objects.filter(user=otto).delete()
        assert heard.get(timeout=30) is None


def test_without_a_login_there_is_no_stream(site: str) -> None:
    assert httpx.get(f"{site}/stream", trust_env=False, timeout=60).status_code == 302


def test_200_streams_hold_no_more_connections_than_one(site: str, lab: Team) -> None:
    user = person("mia", lab)
    make_run(lab, status=Status.RUNNING)
    with listening(site, user):
        time.sleep(1)
        one = num_connections()
        with httpx.Client(cookies=cookies(user), timeout=60, trust_env=False, limits=httpx.Limits()) as client:
            opened = [client.send(client.build_request("GET", f"{site}/stream"), stream=True) for _ in range(199)]
            for response in opened:
                next(response.iter_lines())
            time.sleep(1)
            assert num_connections() <= one
            for response in opened:
                response.close()


def num_connections() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        return cursor.fetchone()[0]

"""`vantage web`: the site alone, as a container or a unit runs it, with servers that run elsewhere."""

import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.db import connection
from vantage import first_start

VANTAGE = [sys.executable, "-P", "-m", "vantage.cli"]
Begin = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def begin(service_environment: dict[str, str], tmp_path: Path) -> Iterator[Begin]:
    begun: list[subprocess.Popen[str]] = []

    def start(home: str, *arguments: str, **more: str) -> subprocess.Popen[str]:
        environment = service_environment | {"VANTAGE_HOME": str(tmp_path / home)} | more
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        begun.append(subprocess.Popen([*VANTAGE, *arguments], env=environment, **pipes))
        return begun[-1]

    yield start
    for process in begun:
        process.kill()
        process.communicate()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def told(process: subprocess.Popen[str]) -> str:
    """The address in its first line."""
    assert process.stdout
    line = process.stdout.readline()
    found = re.match(r"Vantage runs at (\S+)\. ", line)
    assert found, line + process.stdout.read()
    return found[1]


def read(url: str) -> str:
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=30) as answer:
        return answer.read().decode()


def test_it_serves_pages_and_their_files_and_ends_on_sigterm(begin: Begin) -> None:
    process = begin("one", "web", "--port", "0")
    address = told(process)
    page = read(address + "/login/")
    assert "Log in" in page
    for path in set(re.findall(r'(?:href|src)="(/static/[^"]+)"', page)):
        assert read(address + path)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert output.endswith("\nVantage has stopped.\n")


def num_waiting() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database"
            " WHERE locktype = 'advisory' AND NOT granted AND datname = current_database()"
        )
        return int(cursor.fetchone()[0])


def test_two_that_start_together_change_the_tables_in_turn(begin: Begin) -> None:
    ports = [free_port(), free_port()]
    connection.cursor().execute("SELECT pg_advisory_lock(%s)", [first_start.MIGRATION_LOCK])
    both = [begin(f"home{port}", "web", "--port", str(port)) for port in ports]
    deadline = time.monotonic() + 60
    while num_waiting() < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    connection.cursor().execute("SELECT pg_advisory_unlock(%s)", [first_start.MIGRATION_LOCK])
    assert [told(process) for process in both] == [f"http://127.0.0.1:{port}" for port in ports]
    assert all("Log in" in read(f"http://127.0.0.1:{port}/login/") for port in ports)


def test_a_second_one_in_the_same_home_is_refused(begin: Begin) -> None:
    told(begin("one", "web", "--port", "0"))
    output, _ = begin("one", "web", "--port", "0").communicate(timeout=30)
    assert re.fullmatch(r"Vantage already runs in \S+/one: end it first, or set VANTAGE_HOME .*\n", output)


def test_a_login_link_carries_the_address_that_people_use(begin: Begin) -> None:
    told(begin("one", "web", "--port", "0", VANTAGE_ORIGINS="https://lab.example,https://old.example"))
    link, _ = begin("one", "login-link").communicate(timeout=30)
    assert link.startswith("https://lab.example/login/link/")

"""`vantage up`: one command, one address, nothing left behind, whatever was killed."""

import http.client
import json
import os
import re
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from vantage.environment import MARK
from vantage.listen import listen
from vantage.machine import require_vector_unit
from vantage.processes import Process, carrying, inhabitants

UP = [sys.executable, "-m", "vantage.cli", "up", "--no-node"]
ADDRESS = re.compile(r"Vantage runs at (http://\S+)\n.*: (http://\S+)\n.*Ctrl-C stops everything", re.S)


def embedded(home: Path) -> dict[str, str]:
    """The environment of somebody who has no servers of his own."""
    inherited = {key: value for key, value in os.environ.items() if key not in ("DATABASE_URL", "BROKER_URL")}
    return inherited | {"VANTAGE_HOME": str(home)}


class Terminal:
    """A running `vantage up` and what it printed."""

    def __init__(self, home: Path, *arguments: str) -> None:
        self.home = home
        self.popen = subprocess.Popen(
            [*UP, "--port", "0", *arguments],
            env=embedded(home),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.text = ""

    def read_until(self, done: Callable[[str], object], seconds: float = 90) -> str:
        assert self.popen.stdout
        deadline = time.monotonic() + seconds
        while not done(self.text):
            assert time.monotonic() < deadline, self.text
            if select.select([self.popen.stdout], [], [], 0.2)[0]:
                piece = os.read(self.popen.stdout.fileno(), 65536).decode()
                assert piece, self.text
                self.text += piece
        return self.text

    def addresses(self) -> tuple[str, str]:
        """The site's address and the login link."""
        found = ADDRESS.search(self.read_until(ADDRESS.search))
        assert found
        return found[1], found[2]

    def end(self) -> int:
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGINT)
        code = self.popen.wait(60)
        assert self.popen.stdout
        self.text += self.popen.stdout.read().decode()
        return code


Begin = Callable[..., Terminal]


def left(home: Path) -> list[Process]:
    servers = inhabitants(home / "postgres" / "data", "postgres") + inhabitants(home / "valkey", "valkey-server")
    return servers + carrying(MARK, str(home))


class Stay(urllib.request.HTTPRedirectHandler):
    """Follow no redirect."""

    def redirect_request(self, *arguments: object) -> None:
        return None


def ask(url: str) -> tuple[int, str]:
    """Status and Location of one answer."""
    try:
        answer = urllib.request.build_opener(Stay).open(url, timeout=30)
    except urllib.error.HTTPError as error:
        answer = error
    return answer.status, answer.headers.get("Location", "")


def child(home: Path, number: int) -> Process:
    return Process(**json.loads((home / "up.json").read_text())["leaders"][number])


def main_pid(file: Path) -> int:
    return int(file.read_text().split()[0])


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="vantage-up-"))
    yield folder / "home"
    shutil.rmtree(folder)


@pytest.fixture
def begin(home: Path) -> Iterator[Begin]:
    """Start `vantage up`, as often as a test wants; at its end nothing may be left."""
    begun: list[Terminal] = []

    def start(*arguments: str) -> Terminal:
        begun.append(Terminal(home, *arguments))
        return begun[-1]

    yield start
    for terminal in begun:
        terminal.end()
    assert left(home) == []


def test_the_site_opens_asks_for_a_login_and_ctrl_c_leaves_no_process(home: Path, begin: Begin) -> None:
    terminal = begin()
    where, link = terminal.addresses()
    assert ask(where + "/team/") == (302, "/login/?next=/team/")
    assert ask(link)[0] < 400
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert terminal.end() == 0
    assert "Vantage has stopped." in terminal.text and "Traceback" not in terminal.text
    assert left(home) == []


def test_a_second_start_prints_the_running_address_and_succeeds(home: Path, begin: Begin) -> None:
    where, _ = begin().addresses()
    second = begin()
    assert second.popen.wait(60) == 0
    second.end()
    assert f"already runs at {where}" in second.text
    command = [sys.executable, "-m", "vantage.cli", "login-link"]
    link = subprocess.run(command, env=embedded(home), capture_output=True, text=True, check=True).stdout.strip()
    assert link.startswith(where) and ask(link)[0] < 400


def test_whatever_is_killed_is_started_again(home: Path, begin: Begin) -> None:
    terminal = begin()
    where, _ = terminal.addresses()
    web = child(home, 0)
    os.kill(main_pid(home / "postgres" / "data" / "postmaster.pid"), signal.SIGKILL)
    terminal.read_until(lambda text: "Postgres ended and starts again" in text)
    os.kill(main_pid(home / "valkey" / "valkey.pid"), signal.SIGKILL)
    terminal.read_until(lambda text: "Valkey ended and starts again" in text)
    web.send(signal.SIGKILL)
    terminal.read_until(lambda text: "web ended (signal 9) and starts again" in text)
    assert ask(where + "/login/")[0] == 200  # the port stayed open, so the browser waited
    assert child(home, 0) != web


def test_after_up_itself_was_killed_the_next_one_heals_what_is_left(home: Path, begin: Begin) -> None:
    first = begin()
    first.addresses()
    web, server = child(home, 0), main_pid(home / "postgres" / "data" / "postmaster.pid")
    first.popen.kill()
    first.popen.wait()
    assert web.alive()
    where, _ = begin().addresses()
    assert not web.alive() and ask(where + "/login/")[0] == 200
    assert main_pid(home / "postgres" / "data" / "postmaster.pid") == server  # adopted: runs go on writing to it


def test_everything_killed_at_once_starts_again(home: Path, begin: Begin) -> None:
    first = begin()
    first.addresses()
    first.popen.kill()
    for process in left(home):
        process.send(signal.SIGKILL)
    where, _ = begin().addresses()
    assert ask(where + "/login/")[0] == 200


def test_a_port_in_use_is_told_with_what_to_do(home: Path, begin: Begin) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        terminal = begin("--port", str(port))
        assert terminal.popen.wait(60) == 1
    terminal.end()
    assert f"Port {port} on 127.0.0.1 is taken by another program" in terminal.text
    assert "--port" in terminal.text and "Traceback" not in terminal.text


def test_ctrl_c_while_starting_leaves_no_process(home: Path, begin: Begin) -> None:
    terminal = begin()
    terminal.read_until(lambda text: "Starting Valkey" in text)
    assert terminal.end() == 0
    assert "Traceback" not in terminal.text
    assert left(home) == []


def test_a_second_ctrl_c_does_not_wait_for_what_hangs(home: Path, begin: Begin) -> None:
    terminal = begin()
    terminal.addresses()
    child(home, 0).send(signal.SIGSTOP)
    terminal.popen.send_signal(signal.SIGINT)
    terminal.read_until(lambda text: "Ctrl-C ends at once" in text)
    assert terminal.end() == 0
    assert "Stopping at once." in terminal.text and "Traceback" not in terminal.text


@pytest.mark.parametrize(
    ("host", "port", "sentence"),
    [
        ("127.0.0.1", 99999, "There is no port 99999: choose one from 1024 to 65535, for example --port 8000."),
        ("192.0.2.1", 8000, "192.0.2.1 is no address of this machine: leave --host out, or give one of its own."),
    ],
)
def test_an_impossible_address_is_refused_in_a_sentence(host: str, port: int, sentence: str) -> None:
    with pytest.raises(ValueError) as refused:
        listen(host, port)
    assert str(refused.value) == sentence


def test_big_static_files_are_sent_compressed_and_need_not_be_sent_twice(home: Path, begin: Begin) -> None:
    where, _ = begin().addresses()
    static = max((home / "static").rglob("*.gz"), key=lambda path: path.stat().st_size)
    path = "/static/" + str(static.relative_to(home / "static").with_suffix(""))
    connection = http.client.HTTPConnection(where.removeprefix("http://"))
    connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
    first = connection.getresponse()
    assert first.headers["Content-Encoding"] == "gzip" and len(first.read()) == static.stat().st_size
    connection.request("GET", path, headers={"If-None-Match": first.headers["ETag"]})
    assert connection.getresponse().status == 304


def test_a_machine_without_avx2_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor : 0\nflags\t\t: fpu sse2 avx\n")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(ValueError, match="no AVX2"):
        require_vector_unit(cpuinfo)

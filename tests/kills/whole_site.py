"""One `vantage up` on a home of its own: started, started again by hand, and ended without leftovers."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from vantage import environment
from vantage.processes import Process, carrying, end, inhabitants
from vantage.running import Running

START_SECONDS = 180.0
STOP_SECONDS = 60.0
FOREIGN = ("DATABASE_URL", "BROKER_URL", "VANTAGE_SECRET_KEY", "DJANGO_SETTINGS_MODULE")


class Site:
    """Postgres, Valkey, web and a node with its Celery worker, in a temporary home."""

    def __init__(self, **settings: str) -> None:
        self.parent = Path(tempfile.mkdtemp(prefix="vantage-kills-"))
        self.home = self.parent / "home"
        self.log = self.parent / "up.log"
        self.settings = settings
        self.port = _free_port()
        self.popen: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start `vantage up` and wait for its address; a second time as somebody does who finds it dead."""
        self.popen = self.command("up", "--port", str(self.port))
        deadline = time.monotonic() + START_SECONDS
        while not self._is_open():
            if self.popen.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"`vantage up` did not start: {self.last_words()}")
            time.sleep(0.05)

    def command(self, *arguments: str) -> subprocess.Popen[bytes]:
        inherited = {name: value for name, value in os.environ.items() if name not in FOREIGN}
        own = inherited | {"VANTAGE_HOME": str(self.home)} | self.settings
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "vantage.cli", *arguments],
                env=own,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _is_open(self) -> bool:
        running = Running.read(self.home)
        return bool(self.popen and running and running.owner.pid == self.popen.pid and running.address)

    def enter(self) -> None:
        """Make this process see the site's database as one of its own would."""
        for name in FOREIGN:
            os.environ.pop(name, None)
        environment.enter(self.home)
        import django

        django.setup()

    def answers(self) -> bool:
        try:
            return urllib.request.urlopen(f"{self.address}/login/", timeout=2).status == 200
        except OSError:
            return False

    def left(self) -> list[Process]:
        servers = inhabitants(self.home / "postgres" / "data", "postgres")
        servers += inhabitants(self.home / "valkey", "valkey-server")
        return servers + carrying(environment.MARK, str(self.home))

    def stop(self) -> list[Process]:
        """End it as Ctrl-C does; returns the processes that it left, which are then ended too."""
        if self.popen is not None:
            Process(self.popen.pid, _started(self.popen)).send(signal.SIGINT)
            try:
                self.popen.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.popen.kill()
        left = self.left()
        end(left, signal.SIGKILL, 5)
        return left

    def remove(self) -> None:
        shutil.rmtree(self.parent, ignore_errors=True)

    def last_words(self) -> str:
        return " ".join(self.log.read_text(errors="replace").splitlines()[-3:]) if self.log.exists() else "(nothing)"


def _started(popen: subprocess.Popen[bytes]) -> int:
    return Process.of(popen.pid).started if popen.poll() is None else 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

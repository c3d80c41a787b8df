"""`vantage up`: everything on this machine, started together, watched, and ended together."""

import os
import signal
import socket
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from vantage import environment, first_start
from vantage.children import Child
from vantage.embedded.folders import HomeLock, require_space
from vantage.embedded.server import Server
from vantage.listen import address, listen, names
from vantage.machine import require_vector_unit
from vantage.processes import Process, carrying, end
from vantage.progress import say, step
from vantage.running import Running

DRAIN_SECONDS = 30.0  # for runs to write a checkpoint; a second Ctrl-C ends the wait
START_SECONDS = 90.0  # until the first page answers
REST_SECONDS = 3.0
LOOK_SECONDS = 0.2
RETRY_SECONDS = 5.0  # until a server that did not start is tried again


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    host: str = "127.0.0.1"
    port: int = 8000
    demo: bool = False
    node: bool = True


def up(options: Options) -> int:
    """Start everything and stay until Ctrl-C; or say where it runs already."""
    home = environment.home()
    lock = HomeLock(home)
    if not lock.taken():
        return _point_to_running(home)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    together = Together(home, options)
    try:
        together.start()
        together.watch()
    except KeyboardInterrupt:
        say("")
    finally:
        together.stop()
    return 0


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _point_to_running(home: Path) -> int:
    """Say where the other one listens, once it does."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        running = Running.read(home)
        if running and running.address and running.owner.alive():
            say(f"Vantage already runs at {running.address}. `vantage login-link` makes a login link.")
            return 0
        time.sleep(LOOK_SECONDS)
    raise ValueError(f"Another `vantage up` is starting in {home}, but has no address yet: look at its terminal.")


class Together:
    """Servers and children of one home, in the order of their start."""

    def __init__(self, home: Path, options: Options) -> None:
        self.home = home
        self.options = options
        self.running = Running(Process.of(os.getpid()))
        self.servers: list[Server] = []
        self.children: list[Child] = []
        self.listener: socket.socket | None = None  # stays open here while the web process is started again

    def start(self) -> None:
        """Bring everything up; ValueError says what stands in the way."""
        say(f"Vantage keeps its data in {self.home}")
        self._clear()
        self.servers = environment.embedded(self.home)
        self.listener = listen(self.options.host, self.options.port)
        require_space(self.home)
        if self.options.node:
            require_vector_unit()
        environment.enter(self.home)
        os.environ.setdefault("VANTAGE_HOSTS", ",".join(names(self.options.host)))
        for server in self.servers:
            with step(f"Starting {server.name}"):
                server.start()
        self._prepare()
        self._start_children(self.listener)
        self._open(address(self.listener))

    def _clear(self) -> None:
        """End what a killed `up` left, and say whose turn it is now."""
        before = Running.read(self.home)
        if before and (leftovers := before.leftovers(self.home)):
            with step(f"Ending {len(leftovers)} processes that a killed `vantage up` left"):
                end(leftovers, signal.SIGKILL, REST_SECONDS)
        self.running.write(self.home)

    def _prepare(self) -> None:
        with step("Preparing the database"):
            first_start.migrate()
        with step("Compressing the pages' files"):
            first_start.collect_static()

    def _start_children(self, listener: socket.socket) -> None:
        descriptor = listener.fileno()
        python = [sys.executable, "-P", "-m"]
        self._child("web", [*python, "vantage.web", "--fd", str(descriptor)], (descriptor,))
        if self.options.node:
            self._child("node", [*python, "vantage.cli", "node"])

    def _child(self, name: str, command: list[str], inherited: tuple[int, ...] = ()) -> None:
        # SPT_NOENV: a process that renames itself keeps its environment readable, by which we know it again.
        marked = os.environ | {environment.MARK: str(self.home), "SPT_NOENV": "1"}
        child = Child(name, command, marked, self.home, self.home / "logs" / f"{name}.log", inherited)
        self.children.append(child)
        child.start()
        self._record()

    def _record(self) -> None:
        self.running.leaders = [child.process for child in self.children if child.process]
        self.running.write(self.home)

    def _open(self, where: str) -> None:
        """Wait for the first page, queue the demo, tell the address."""
        with step("Opening the site"):
            self._await_page(where + first_start.login_page())
        landing = ""
        if self.options.demo:
            with step("Queueing the demo run"):
                landing = f"?next={first_start.queue_demo()}"
        link = where + first_start.login_path() + landing
        self.running.address = where
        self._record()
        say(f"\nVantage runs at {where}\nLog in once within 15 minutes: {link}")
        say("`vantage login-link` makes another link. Ctrl-C stops everything.")

    def _await_page(self, url: str) -> None:
        web = self.children[0]
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        deadline = time.monotonic() + START_SECONDS
        while web.alive() and time.monotonic() < deadline:
            try:
                opener.open(url, timeout=START_SECONDS).close()
                return
            except urllib.error.HTTPError as error:
                raise ValueError(f"{url} answers {error.code}; {web.log} says why.") from error
            except OSError:
                time.sleep(LOOK_SECONDS)
        raise ValueError(f"The site does not start; {web.log} says why.")

    def watch(self) -> None:
        """Start again whatever dies."""
        while True:
            time.sleep(LOOK_SECONDS)
            for server in self.servers:
                if not server.alive():
                    self._revive(server)
            notes = [child.revive() for child in self.children]
            for note in filter(None, notes):
                say(note)
            if self.running.leaders != [child.process for child in self.children]:
                self._record()

    def _revive(self, server: Server) -> None:
        say(f"{server.name} ended and starts again; its log: {server.log}")
        try:
            server.start()
        except ValueError as error:
            say(str(error))
            time.sleep(RETRY_SECONDS)

    def stop(self) -> None:
        """Let runs write their checkpoints, then leave no process."""
        try:
            self._drain()
        except KeyboardInterrupt:
            say("Stopping at once.")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        for child in self.children:
            child.end_rest()
        end(carrying(environment.MARK, str(self.home)), signal.SIGTERM, REST_SECONDS)
        for server in reversed(self.servers):
            server.stop()
        say("Vantage has stopped.")

    def _drain(self) -> None:
        """Ask the children to end, and wait for those that have something to finish."""
        for child in self.children:
            child.ask()
        begun, next_word = time.monotonic(), 2.0
        while any(child.alive() for child in self.children):
            waited = time.monotonic() - begun
            if waited > DRAIN_SECONDS:
                return
            if waited > next_word:
                next_word += 5
                say(f"Runs write their checkpoints, {waited:.0f} of {DRAIN_SECONDS:.0f} s; Ctrl-C ends at once.")
            time.sleep(0.05)

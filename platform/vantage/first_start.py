"""What `vantage up` and `vantage web` do through Django before the site opens: tables, the first admin, a way in."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import django
from django.core.management import call_command
from django.db import OperationalError, connection, connections
from django.urls import reverse

MIGRATION_LOCK = 0x56616E74  # "Vant": Postgres' advisory lock of whoever changes the tables


@contextmanager
def _connected() -> Iterator[None]:
    """Leave no connection open, and say in a sentence that Postgres is away."""
    try:
        yield
    except OperationalError as error:
        place = connections["default"].settings_dict["HOST"]
        reason = str(error).strip().splitlines()[0]
        raise ValueError(
            f"Postgres at {place} does not answer ({reason}): start it, or correct DATABASE_URL."
        ) from error
    finally:
        connections.close_all()


def migrate() -> None:
    """Bring the tables up to date; of two that start together one waits for the other."""
    django.setup()
    with _connected():
        connection.cursor().execute("SELECT pg_advisory_lock(%s)", [MIGRATION_LOCK])  # closing the connection frees it
        call_command("migrate", verbosity=0, interactive=False)


def collect_static() -> None:
    """Put the pages' files, compressed too, where the web process serves them from."""
    call_command("collectstatic", verbosity=0, interactive=False, clear=True)


def login_path(name: str | None = None) -> str:
    """Make a one-time login link for a user, by default the first admin, who is created when there is nobody."""
    django.setup()
    from vantage.teams.login import login_link
    from vantage.teams.models import User
    from vantage.teams.setup import ensure_first_team

    with _connected():
        first, _ = ensure_first_team()
        user = User.objects.filter(username=name, is_active=True).first() if name else first
        if user is None:
            raise ValueError(f"There is no active user {name!r}: leave --user out, or name one of the page Team.")
        return login_link(user)


def queue_demo() -> str:
    """Queue the demo run, unless the team has runs already; returns the path of the page to look at."""
    from vantage.runs.demo import queue_demo
    from vantage.runs.models import Run
    from vantage.teams.setup import ensure_first_team

    with _connected():
        user, team = ensure_first_team()
        if Run.objects.filter(team=team).exists():
            return reverse("runs")
        return reverse("run", args=[queue_demo(team, user).pk])


def queue_smollm2(files: dict[str, Path]) -> tuple[str, list[str]]:
    """Queue the recipe smollm2 for the first admin's team; returns its page's path and what training shares."""
    django.setup()
    from vantage.runs.recipe import queue_smollm2, shared
    from vantage.teams.setup import ensure_first_team

    with _connected():
        user, team = ensure_first_team()
        run = queue_smollm2(team, user, files)
        return reverse("run", args=[run.pk]), shared(run)


def login_page() -> str:
    """The path of a page that answers without a login."""
    return reverse("login")

"""The tests speak to a real Postgres and a real Valkey."""

import os
import subprocess
import sys
import time

import psycopg
import pytest
import redis
from django.conf import settings
from django.db import connection, transaction
from vantage.runs.supervisor import patiently
from vantage.settings import database
from vantage.teams.models import Team


@pytest.mark.django_db
def test_the_database_is_postgres_and_stores_what_is_written() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 'ü' || chr(128512)")
        assert cursor.fetchone() == ("ü😀",)


@pytest.mark.django_db
def test_who_stands_still_amid_a_transaction_keeps_others_waiting_for_a_lease_at_most() -> None:
    site = psycopg.conninfo.make_conninfo(os.environ["DATABASE_URL"], dbname=connection.settings_dict["NAME"])
    with psycopg.connect(site, **database(os.environ["DATABASE_URL"])["OPTIONS"]) as direct:  # type: ignore[arg-type]
        found = direct.execute("SELECT setting FROM pg_settings WHERE name = 'idle_in_transaction_session_timeout'")
        assert found.fetchone() == (f"{max(5.0, settings.LEASE_SECONDS) * 1000:.0f}",)


@pytest.mark.django_db(transaction=True)
def test_a_supervisor_that_was_let_go_amid_a_transaction_asks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vantage.runs.supervisor.AWAY_SECONDS", 0.01)
    tries: list[int] = []

    def stand_still() -> int:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET idle_in_transaction_session_timeout = 50")
            tries.append(Team.objects.count())
            time.sleep(0.3 if len(tries) == 1 else 0)
            return Team.objects.count()

    assert patiently(stand_still) == 0 and len(tries) == 2


def test_valkey_answers(broker: str) -> None:
    assert redis.from_url(broker).ping()


def test_a_subprocess_sees_the_rows_of_a_test(service_environment: dict[str, str]) -> None:
    Team.objects.create(name="Seen", slug="seen")
    program = "import django; django.setup(); from vantage.teams.models import Team; print(Team.objects.get().name)"
    done = subprocess.run([sys.executable, "-c", program], env=service_environment, capture_output=True, text=True)
    assert done.stdout.strip() == "Seen", done.stderr

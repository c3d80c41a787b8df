"""The tests speak to a real Postgres and a real Valkey."""

import subprocess
import sys

import pytest
import redis
from django.db import connection
from vantage.teams.models import Team


@pytest.mark.django_db
def test_the_database_is_postgres_and_stores_what_is_written() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 'ü' || chr(128512)")
        assert cursor.fetchone() == ("ü😀",)


def test_valkey_answers(broker: str) -> None:
    assert redis.from_url(broker).ping()


def test_a_subprocess_sees_the_rows_of_a_test(service_environment: dict[str, str]) -> None:
    Team.objects.create(name="Seen", slug="seen")
    program = "import django; django.setup(); from vantage.teams.models import Team; print(Team.objects.get().name)"
    done = subprocess.run([sys.executable, "-c", program], env=service_environment, capture_output=True, text=True)
    assert done.stdout.strip() == "Seen", done.stderr

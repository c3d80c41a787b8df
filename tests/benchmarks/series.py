"""Time 100,000 points and 50 runs x 10,000 points: `python tests/benchmarks/series.py` makes a database of its own."""

import os
import time
from collections.abc import Callable

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "vantage.settings")
os.environ.setdefault("VANTAGE_SECRET_KEY", "benchmark")

import django

django.setup()

from django.db import connection  # noqa: E402 needs Django set up
from django.test.utils import setup_databases, teardown_databases  # noqa: E402 needs Django set up
from django.utils import timezone  # noqa: E402 needs Django set up
from vantage.runs.models import MetricKey, Run  # noqa: E402 needs Django set up
from vantage.runs.series import series, series_of  # noqa: E402 needs Django set up
from vantage.teams.models import Team  # noqa: E402 needs Django set up

FILL = """
    INSERT INTO runs_metricrow (run_id, attempt, key_id, seq, step, time, value)
    SELECT %s, 1, key, step, step, 1.7e9 + step * 0.5,
           CASE WHEN key = 1 AND step %% 5000 = 7 THEN 'NaN' WHEN key = 2 THEN step * 100 ELSE random() END
    FROM generate_series(1, %s) AS step, generate_series(1, 20) AS key"""


def main() -> None:
    made = setup_databases(verbosity=0, interactive=False)
    try:
        measure()
    finally:
        teardown_databases(made, verbosity=0)


def measure() -> None:
    MetricKey.objects.create(pk=1, name="reward/mean")
    MetricKey.objects.create(pk=2, name="tokens/generated")
    team = Team.objects.create(name="benchmark", slug="benchmark")
    long = filled(team, 1, 100_000)
    many = [filled(team, number, 10_000) for number in range(2, 52)]
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE runs_metricrow")
    for axis in ("step", "time", "tokens"):
        report(f"100,000 points by {axis}", 100, lambda axis=axis: series(long, "reward/mean", x=axis))  # type: ignore[misc]
    report("zoom into 1%", 100, lambda: series(long, "reward/mean", low=50_000, high=51_000))
    report("50 runs x 10,000 points", 500, lambda: series_of(many, "reward/mean"))


def filled(team: Team, number: int, num_steps: int) -> Run:
    run = Run.objects.create(team=team, number=number, name=f"run {number}", spec={})
    run.attempts.create(number=1, lease_until=timezone.now())
    with connection.cursor() as cursor:
        cursor.execute(FILL, [run.pk, num_steps])
    return run


def report(what: str, budget: int, read: Callable[[], object]) -> None:
    times = []
    for _ in range(5):
        begun = time.perf_counter()
        read()
        times.append(1000 * (time.perf_counter() - begun))
    print(f"{what}: median {sorted(times)[2]:.0f} ms, worst {max(times):.0f} ms (budget {budget} ms)", flush=True)


main()

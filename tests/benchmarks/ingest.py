"""Ship the journals of 20 live runs: `python tests/benchmarks/ingest.py` makes a database of its own."""

import json
import os
import tempfile
import time
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "vantage.settings")
os.environ.setdefault("VANTAGE_SECRET_KEY", "benchmark")

import django
import psutil

django.setup()

from django.db import connection  # noqa: E402 needs Django set up
from django.test.utils import setup_databases, teardown_databases  # noqa: E402 needs Django set up
from django.utils import timezone  # noqa: E402 needs Django set up
from vantage.runs.folder import AttemptFolder  # noqa: E402 needs Django set up
from vantage.runs.ingest import Shipper  # noqa: E402 needs Django set up
from vantage.runs.models import MetricRow, Run  # noqa: E402 needs Django set up
from vantage.teams.models import Team  # noqa: E402 needs Django set up

NUM_RUNS, NUM_KEYS, ROUNDS = 20, 40, 5
BUDGET = 50_000  # points per second


def main() -> None:
    made = setup_databases(verbosity=0, interactive=False)
    try:
        for lines in (25, 250):  # a second of 20 quick runs; a supervisor that catches up
            measure(lines)
    finally:
        teardown_databases(made, verbosity=0)


def measure(lines: int) -> None:
    team, _ = Team.objects.get_or_create(name="benchmark", slug="benchmark")
    with tempfile.TemporaryDirectory() as folder:
        shippers = [shipper(team, Path(folder) / str(number)) for number in range(NUM_RUNS)]
        spent, before, first = 0.0, MetricRow.objects.count(), 1
        processor = processor_seconds()
        for _ in range(ROUNDS):
            for one in shippers:
                append(one.folder, first, lines)
            begun = time.perf_counter()
            for one in shippers:
                one.ship()
            spent += time.perf_counter() - begun
            first += lines
        processor = processor_seconds() - processor
        points = MetricRow.objects.count() - before
    print(f"{lines * NUM_KEYS:,} points a flush: {points / spent:,.0f} points/s (budget {BUDGET:,});", end=" ")
    print(f"{points / processor:,.0f} points per second of processor time, Postgres' and ours", flush=True)


def processor_seconds() -> float:
    """Seconds that this process and its Postgres backend have computed: tells more on a busy machine."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        processes = [psutil.Process(), psutil.Process(cursor.fetchone()[0])]
    return sum(process.cpu_times().user + process.cpu_times().system for process in processes)


def shipper(team: Team, folder: Path) -> Shipper:
    (folder / "journal").mkdir(parents=True)
    run = Run.objects.create(team=team, number=Run.objects.count() + 1, name="a run", spec={}, attempt=1)
    return Shipper(run.attempts.create(number=1, lease_until=timezone.now()), AttemptFolder(folder))


def append(folder: AttemptFolder, first: int, lines: int) -> None:
    values = {f"metric/{number}": 0.123456789 * number for number in range(NUM_KEYS)}
    with folder.journal("metrics").open("a") as file:
        for seq in range(first, first + lines):
            file.write(json.dumps({"seq": seq, "time": 1.7e9 + seq, "step": seq, "values": values}) + "\n")


main()

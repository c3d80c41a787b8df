"""Time the table of 10,000 runs, sorted and searched; `python tests/benchmarks/table.py` makes its own database."""

import os
import time
from collections.abc import Callable

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "vantage.settings")
os.environ.setdefault("VANTAGE_SECRET_KEY", "benchmark")

import django

django.setup()

from django.db import connection  # noqa: E402 needs Django set up
from django.http import QueryDict  # noqa: E402 needs Django set up
from django.test import Client  # noqa: E402 needs Django set up
from django.test.utils import setup_databases, teardown_databases  # noqa: E402 needs Django set up
from django.urls import reverse  # noqa: E402 needs Django set up
from django.utils import timezone  # noqa: E402 needs Django set up
from vantage.runs.models import Attempt, MetricKey, Run  # noqa: E402 needs Django set up
from vantage.runs.table import Wish, page_of  # noqa: E402 needs Django set up
from vantage.teams.models import Membership, Role, Team, User  # noqa: E402 needs Django set up
from vantage_trainer.spec import EvaluationSet, RunSpec  # noqa: E402 needs Django set up

NUM_RUNS, NUM_STEPS, EVERY, BUDGET = 10_000, 40, 10, 150
KEYS = ("reward/mean", "eval/heldout/pass@1", "eval/heldout/low", "eval/heldout/high", "policy/entropy")
FILL = """
    INSERT INTO runs_metricrow (run_id, attempt, key_id, seq, step, time, value)
    SELECT run.id, 1, key.id, step, step, 1.7e9 + step, random()
    FROM runs_run AS run, runs_metrickey AS key, generate_series(1, %s) AS step
    WHERE key.name NOT LIKE 'eval/%%' OR step %% %s = 0"""


def main() -> None:
    made = setup_databases(verbosity=0, interactive=False)
    try:
        measure()
    finally:
        teardown_databases(made, verbosity=0)


def measure() -> None:
    team, user = filled()
    for query in ("", "sort=name", "sort=-duration", "sort=-reward", "sort=-pass", "q=sweep-0042", "page=150"):
        wish = Wish.of(QueryDict(query))
        own = Run.objects.visible_to(user).filter(team=team).select_related("created_by")
        report(query or "newest first", lambda own=own, wish=wish: page_of(own, wish))  # type: ignore[misc]
    client = Client(HTTP_HOST="127.0.0.1")
    client.force_login(user)
    report("the page over HTTP", lambda: client.get(reverse("runs")))


def filled() -> tuple[Team, User]:
    team, user = Team.objects.create(name="benchmark", slug="benchmark"), User.objects.create_user("benchmark")
    Membership.objects.create(team=team, user=user, role=Role.ADMIN)
    spec = RunSpec()
    spec.evaluation.sets = [EvaluationSet(name="heldout", dataset="sums@1")]
    common = {"team": team, "spec": spec.model_dump(mode="json"), "status": "succeeded", "attempt": 1}
    now = timezone.now()
    names = [(number, f"sweep-{number:05}") for number in range(1, NUM_RUNS + 1)]
    made = [Run(number=number, name=name, started=now, ended=now, **common) for number, name in names]
    runs = Run.objects.bulk_create(made, batch_size=1000)
    Attempt.objects.bulk_create([Attempt(run=run, number=1, outcome="succeeded", lease_until=now) for run in runs])
    MetricKey.objects.bulk_create(MetricKey(name=name) for name in KEYS)
    with connection.cursor() as cursor:
        cursor.execute(FILL, [NUM_STEPS, EVERY])
        cursor.execute("VACUUM ANALYZE")
    return team, user


def report(what: str, read: Callable[[], object]) -> None:
    times = []
    for _ in range(7):
        begun = time.perf_counter()
        read()
        times.append(1000 * (time.perf_counter() - begun))
    median, best, worst = sorted(times)[3], min(times), max(times)
    print(f"{what}: median {median:.0f} ms, {best:.0f} to {worst:.0f} ms (budget {BUDGET} ms)", flush=True)


main()

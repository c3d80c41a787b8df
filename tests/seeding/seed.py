"""Fill a database with runs as a team would have them, odd ones included: `python tests/seeding/seed.py [--many N]`.

For looking at pages: curves that rise, collapse or hold NaN, every state, names and texts of any content.
"""

import argparse
import random
from datetime import UTC, datetime, timedelta

import django

django.setup()

from django.utils import timezone  # noqa: E402  settings must be ready first
from reports import WARM_START_SECONDS, key_ids, report  # noqa: E402
from vantage.datasets.models import Dataset, DatasetVersion  # noqa: E402
from vantage.nodes.models import Node  # noqa: E402
from vantage.runs.models import Attempt, MetricRow, Run  # noqa: E402
from vantage.teams.models import Membership, Role, Team, User  # noqa: E402
from vantage_trainer.presets import PRESETS  # noqa: E402
from vantage_trainer.spec import EvaluationSet, RunSpec, WarmStart  # noqa: E402

ODD_NAMES = (
    "<img src=x onerror=alert(1)>",
    '=HYPERLINK("http://example.com")',
    "emoji 🚀 and \u200fright-to-left\u200f marks",
    "報酬の高い実験",
    ("a-name-without-any-space-that-is-as-long-as-names-get-" * 4)[:200],
)
NODE = {"host": "lab-1.internal", "version": "0.1.0", "devices": [{"id": "cpu0", "kind": "cpu", "memory": 24 * 10**9}]}
OVER = ("succeeded", "failed", "stopped")


def people() -> tuple[Team, dict[str, User], Team]:
    """Two teams: maya, tomas and the viewer vic in one, otto in the other; everybody's password is vantage."""
    team, _ = Team.objects.get_or_create(slug="lab", defaults={"name": "Reasoning lab"})
    other, _ = Team.objects.get_or_create(slug="elsewhere", defaults={"name": "Elsewhere"})
    roles = {"maya": Role.ADMIN, "tomas": Role.MEMBER, "vic": Role.VIEWER, "otto": Role.ADMIN}
    users = {}
    for name, role in roles.items():
        users[name], _ = User.objects.get_or_create(username=name)
        users[name].set_password("vantage")
        users[name].save()
        Membership.objects.get_or_create(team=other if name == "otto" else team, user=users[name], role=role)
    return team, users, other


def spec_of(preset: str, steps: int, minibatches: int) -> RunSpec:
    algorithm = PRESETS[preset].algorithm.model_copy(update={"preset": preset})
    spec = RunSpec(algorithm=algorithm, warm_start=WarmStart())
    spec.data.train = "sums@1"
    spec.evaluation.sets = [EvaluationSet(name="heldout", dataset="sums-heldout@1", n=4, k=[1, 4])]
    spec.optimization.learning_rate, spec.optimization.minibatches = 2e-4, minibatches
    spec.budget.steps = steps
    return spec


def make(
    team: Team,
    user: User,
    name: str,
    status: str,
    *,
    preset: str = "grpo",
    steps: int = 120,
    done: int = 120,
    hours_ago: float = 0,
    minibatches: int = 2,
    speed: float = 1.0,
    wild: bool = False,
    **more: object,
) -> Run:
    """One run in a state, with what it would have reported."""
    took = timedelta(seconds=WARM_START_SECONDS + done * 0.45)
    begun = timezone.now() - timedelta(hours=hours_ago) - took if status != "queued" else None
    run = Run.objects.create(
        team=team,
        number=Run.objects.filter(team=team).count() + 1,
        name=name,
        spec=spec_of(preset, steps, minibatches).model_dump(mode="json"),
        status=status,
        created_by=user,
        attempt=int(begun is not None),
        node=Node.objects.order_by("pk").first() if begun else None,
        started=begun,
        ended=begun + took if begun and status in OVER else None,
        **more,
    )
    if begun:
        Run.objects.filter(pk=run.pk).update(created=begun - timedelta(seconds=4))
        begin(run, begun, done)
        if done:
            report(run, begun, done, speed=speed, wild=wild)
    return run


def begin(run: Run, begun: datetime, done: int) -> None:
    outcome = run.status if run.status in (*OVER, "lost") else ""
    Attempt.objects.create(
        run=run,
        number=1,
        node=run.node,
        devices=["cpu0"] if run.status == "running" and run.number == 1 else [],
        outcome=outcome,
        started=begun,
        lease_until=timezone.now(),
        step=done,
    )


def seed(many: int = 0, lengths: tuple[int, ...] = (132, 120)) -> None:
    """Make people, nodes, datasets and runs; `lengths` are the steps of the longest runs: shorter is quicker."""
    team, users, other = people()
    maya, otto = users["maya"], users["otto"]
    gpus = {"cuda0": [0.97, 118e9, 150e9], "cuda1": [0.04, 3e9, 150e9]}
    usage = {"cpu": 0.83, "memory": [9.1e9, 24e9], "disk": [31e9, 200e9], "gpus": gpus}
    hour = [(30 * n, {"cpu": 0.5 + 0.3 * random.random(), "memory": n / 300, "cuda0": 0.9}) for n in range(120)]
    ahead = timezone.now() + timedelta(hours=1)
    Node.objects.update_or_create(name="lab-1", defaults=NODE | {"usage": usage, "history": hour, "heartbeat": ahead})
    silent = {"host": "old-box.internal", "heartbeat": timezone.now() - timedelta(hours=5)}
    Node.objects.update_or_create(name="old-box", defaults=NODE | silent)
    for name, num_rows in (("sums", 4096), ("sums-heldout", 512)):
        dataset, _ = Dataset.objects.get_or_create(team=team, name=name, defaults={"created_by": maya})
        DatasetVersion.objects.get_or_create(dataset=dataset, number=1, defaults={"digest": name, "num_rows": num_rows})
    if lengths:
        make_runs(team, users, *lengths)
    make(other, otto, "a secret of elsewhere", "running", done=0)
    make(other, otto, "another secret", "queued", done=0)
    fill(team, maya, many)


def make_runs(team: Team, users: dict[str, User], longest: int, done: int) -> None:
    """A run in every state."""
    maya, tomas = users["maya"], users["tomas"]
    make(team, maya, "grpo-sums-lr2e-4", "running", steps=200, done=longest, tags=["baseline"], notes="A new verifier.")
    make(team, maya, "dapo-sums", "succeeded", preset="dapo", done=done, hours_ago=2, speed=1.3, tags=["sweep", "dapo"])
    make(team, tomas, "dr-grpo-sums", "succeeded", preset="dr_grpo", done=done, hours_ago=5, speed=0.9, tags=["sweep"])
    why = "The loss was NaN three steps in a row from step 94 on. Lower the learning rate or clip the gradient norm."
    make(
        team,
        tomas,
        "spikes",
        "failed",
        preset="reinforce",
        hours_ago=9,
        done=96,
        wild=True,
        minibatches=1,
        sentence=why,
    )
    make(team, maya, "grpo-long-context", "stopped", hours_ago=26, done=done // 3)
    why = "Its node has been silent since step 60; it resumes from step 50 when a node is free."
    make(team, tomas, "grpo-other-seed", "lost", hours_ago=1, done=done // 2, sentence=why)
    make(team, tomas, "grpo-just-begun", "starting", done=0)
    for name in ODD_NAMES:
        make(team, maya, name, "queued", done=0)


def fill(team: Team, user: User, many: int) -> None:
    """Plain finished runs with a few points each, for measuring the table."""
    spec = spec_of("grpo", 120, 1).model_dump(mode="json")
    base, now = Run.objects.filter(team=team).count(), datetime.now(UTC)
    common = {"team": team, "spec": spec, "status": "succeeded", "created_by": user, "attempt": 1, "started": now}
    runs = Run.objects.bulk_create(
        [
            Run(number=base + n + 1, name=f"sweep-{n:05}", ended=now + timedelta(seconds=n), **common)
            for n in range(many)
        ],
        batch_size=1000,
    )
    Attempt.objects.bulk_create(
        [Attempt(run=run, number=1, outcome="succeeded", lease_until=now, step=120) for run in runs], batch_size=1000
    )
    ids = key_ids({"reward/mean", "eval/heldout/pass@1", "eval/heldout/low", "eval/heldout/high"}).values()
    MetricRow.objects.bulk_create(
        (
            MetricRow(run=run, attempt=1, seq=seq, key_id=key, step=seq * 40, time=0, value=random.random())
            for run in runs
            for seq in (1, 2, 3)
            for key in ids
        ),
        batch_size=10_000,
    )


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--many", type=int, default=0, help="so many more runs, for measuring")
    seed(options.parse_args().many)

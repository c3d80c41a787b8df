"""A run that was killed and went on: the steps past its checkpoint stand twice."""

from django.utils import timezone
from vantage.runs.models import Attempt, MetricRow, Run, Sample
from vantage.runs.prepare import resumed
from vantage.runs.states import Outcome


def go_on(run: Run, at: int, *, drift: float = 0.0) -> None:
    """Let attempt 2 go on from a step and tell again what attempt 1 had told past it, times 1 + drift."""
    Attempt.objects.filter(run=run).update(outcome=Outcome.LOST, sentence="The trainer ended by SIGKILL.")
    reached = run.attempts.get(number=1).step
    run.attempts.create(number=2, node=run.node, outcome=run.status, lease_until=timezone.now(), step=reached)
    told = {"from_step": at, "stage": "rl", "checkpoint": f"checkpoints/step-{at:06}"}
    run.events.create(attempt=2, seq=1, step=at, time=timezone.now().timestamp(), kind="resumed", data=told)
    rows = list(MetricRow.objects.filter(run=run, attempt=1, step__gt=at).exclude(key__name__startswith="warm_start/"))
    for row in rows:
        row.attempt, row.value = 2, row.value * (1 + drift)
    MetricRow.objects.bulk_create(rows)
    samples = list(Sample.objects.filter(run=run, attempt=1, step__gt=at))
    for sample in samples:
        sample.pk, sample.attempt = None, 2
        sample.text += " but not so" if drift and sample.index == 3 else ""
    Sample.objects.bulk_create(samples)
    Run.objects.filter(pk=run.pk).update(attempt=2)
    resumed(run.pk, 2, at)

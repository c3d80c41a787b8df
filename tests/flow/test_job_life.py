"""A job's life with the real agent, Celery, Postgres and Valkey: that of a run."""

import json
import signal
from collections.abc import Callable

from vantage.runs.folder import RunFolder
from vantage.runs.jobs import create_job
from vantage.runs.models import Run
from vantage.runs.states import Status
from vantage_trainer.jobspec import ExportSpec
from world import World, at_step, status, supervisor_of, trainer_of, until


def at_attempt(run: Run, number: int) -> Callable[[], bool]:
    return lambda: RunFolder.of(run.pk).attempt(number).trainer.exists()


def test_a_job_is_lost_starts_again_is_adopted_and_ends(world: World, queue: Callable[..., Run]) -> None:
    world.agent(steps=40, pause=0.1, every=1000)
    parent = queue(priority=-1)
    job = create_job(parent.team, parent.created_by, ExportSpec())
    until(at_step(job, 2))
    trainer_of(job).send(signal.SIGKILL)
    until(at_attempt(job, 2))
    until(at_step(job, 3))
    trainer = trainer_of(job, 2)
    supervisor_of(job).send(signal.SIGKILL)
    until(lambda: status(job) == Status.SUCCEEDED)
    assert trainer == trainer_of(job, 2)
    assert list(job.attempts.order_by("number").values_list("outcome", flat=True)) == ["lost", "succeeded"]
    assert json.loads(RunFolder.of(job.pk).job.read_text())["spec"]["kind"] == "export"
    assert not RunFolder.of(job.pk).spec.exists()

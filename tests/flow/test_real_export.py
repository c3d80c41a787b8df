"""An export from the queue to the tar: the real agent, supervisor and job on a checkpoint that lies on the node."""

import asyncio
import io
import socket
import tarfile
from collections.abc import AsyncIterator, Callable

import pytest
from django.test import Client
from django.urls import reverse
from vantage.nodes.models import Node
from vantage.runs.folder import RunFolder
from vantage.runs.jobs import create_job
from vantage.runs.models import Run
from vantage.runs.states import Status
from vantage_trainer.jobspec import ExportSpec
from vantage_trainer.spec import Model
from world import World, until

pytestmark = pytest.mark.engine


def write_checkpoint(run: Run) -> None:
    """What a trainer of the tiny model leaves after its step 40."""
    from vantage_trainer import checkpoint
    from vantage_trainer.engine_state import MOMENTS, AdamState
    from vantage_trainer.model_source import resolve
    from vantage_trainer.progress import Progress

    folder = RunFolder.of(run.pk).path
    weights = checkpoint.load_file(resolve(Model(), folder / "models") / "model.safetensors")
    adam = AdamState({name: value + 1 for name, value in weights.items()}, dict.fromkeys(MOMENTS, weights))
    progress = Progress(stage="rl", step=40)
    checkpoint.save(folder / "checkpoints", checkpoint.Snapshot(progress, adam), keep_last=1, keep_best=False)


def test_an_export_goes_from_the_queue_to_a_tar(world: World, queue: Callable[..., Run], client: Client) -> None:
    parent = queue()
    node = Node.objects.create(name="n1", host=socket.gethostname(), devices=[{"id": "cpu0", "kind": "cpu"}])
    Run.objects.filter(pk=parent.pk).update(status=Status.SUCCEEDED, node=node, attempt=1)
    parent.refresh_from_db()
    parent.checkpoints.create(attempt=1, step=40, folder="checkpoints/step-000040")
    write_checkpoint(parent)
    job = create_job(parent.team, parent.created_by, ExportSpec(checkpoint="step-000040"), parent=parent)
    world.environment["VANTAGE_JOB_MODULE"] = "vantage_trainer.job"
    world.agent("n1")
    until(lambda: Run.objects.get(pk=job.pk).status in (Status.SUCCEEDED, Status.FAILED), seconds=240)
    job.refresh_from_db()
    assert job.status == Status.SUCCEEDED, job.sentence
    assert not (RunFolder.of(job.pk).path / "parent" / "step-000040").exists()
    client.force_login(parent.created_by)
    assert "Download as .tar" in client.get(reverse("job", args=[job.pk])).content.decode()
    answer = client.get(reverse("job_output", args=[job.pk]))
    with tarfile.open(fileobj=io.BytesIO(asyncio.run(whole(answer.streaming_content)))) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= names


async def whole(pieces: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in pieces])

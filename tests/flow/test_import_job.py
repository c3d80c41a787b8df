"""A real import under a real node, killed amid its storing: it goes on by itself, and its version is whole."""

import signal
from pathlib import Path

from vantage.datasets.columns import Columns
from vantage.datasets.models import DatasetVersion, Row, Upload
from vantage.runs.folder import RunFolder
from vantage.runs.import_queue import import_upload, node_here
from vantage.runs.models import Run
from vantage.runs.states import Status
from vantage.teams.models import Team, User
from world import World, status, trainer_of, until

NUM_ROWS = 30_000


def kept(team: Team, user: User) -> Upload:
    upload = Upload(team=team, created_by=user, name="sums", filename="rows.jsonl", format="jsonl")
    upload.path.parent.mkdir()
    upload.path.write_text("".join(f'{{"prompt": "{n}+1=", "answer": "{n + 1}"}}\n' for n in range(NUM_ROWS)))
    upload.save(force_insert=True)
    return upload


def test_an_import_killed_amid_its_storing_is_done_again_and_whole(transactional_db: None, world: World) -> None:
    world.environment["VANTAGE_IMPORT_MODULE"] = "vantage.runs.importing"
    team, user = Team.objects.create(name="Lab", slug="lab"), User.objects.create_user("mia")
    upload = kept(team, user)
    world.agent()
    until(node_here)
    node = node_here()
    assert node is not None
    job = import_upload(upload, user, Columns(prompt="prompt", answer="answer"), node, leave_out=False)
    events: Path = RunFolder.of(job.pk).attempt(1).journal("events")
    until(lambda: events.exists() and '"storing"' in events.read_text())
    trainer_of(job).send(signal.SIGKILL)
    assert not Row.objects.exists()
    until(lambda: status(job) == Status.SUCCEEDED)
    job = Run.objects.get(pk=job.pk)
    assert job.attempt == 2 and job.sentence == "sums@1 holds 30,000 rows."
    assert DatasetVersion.objects.get().num_rows == Row.objects.count() == NUM_ROWS
    until(lambda: not Upload.objects.exists() and not upload.path.exists())

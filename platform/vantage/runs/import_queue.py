"""Queue the import of a file: on a node that sees where the site keeps uploads, or of one on the hub, on any node."""

from collections.abc import Iterable
from pathlib import Path
from uuid import UUID, uuid5

from django.conf import settings
from vantage_trainer.jobspec import HubFile, ImportSpec

from vantage.datasets.columns import Columns
from vantage.datasets.models import Upload
from vantage.nodes.models import Node
from vantage.runs.create import AlreadyLaunched
from vantage.runs.folder import is_held
from vantage.runs.jobs import create_job, jobs_visible_to
from vantage.runs.models import Run
from vantage.runs.states import OVER, Kind, Status
from vantage.teams.models import Reader, Team, User

SHOWN_AFTER_THE_END = (Status.FAILED, Status.STOPPED)


def node_here() -> Node | None:
    """Return a living node that works in this site's home folder, where uploads lie."""
    locks = (Path(settings.HOME) / "nodes").glob("*.lock")
    names = [lock.name.removesuffix(".lock") for lock in locks if is_held(lock)]
    return Node.objects.alive().filter(name__in=names, draining=False).order_by("paused", "name").first()


def import_upload(upload: Upload, user: User, columns: Columns, node: Node, *, leave_out: bool) -> Run:
    """Queue the import of an uploaded file; asked twice it is one job."""
    spec = ImportSpec(name=upload.name, upload=str(upload.pk), columns=columns.model_dump(), leave_out=leave_out)
    Upload.objects.filter(pk=upload.pk).update(importing=True)
    token = uuid5(upload.pk, spec.model_dump_json())
    try:
        return create_job(upload.team, user, spec, name=f"Import of {upload.name}", node=node, token=token)
    except AlreadyLaunched as known:
        return known.run


def import_from_hub(
    team: Team, user: User, name: str, hub: HubFile, columns: Columns | None, token: UUID | None, *, leave_out: bool
) -> Run:
    """Queue the import of a dataset on the hub; any node may fetch it."""
    chosen = columns.model_dump() if columns else None
    spec = ImportSpec(name=name, hub=hub, columns=chosen, leave_out=leave_out)
    try:
        return create_job(team, user, spec, name=f"Import of {name}", token=token)
    except AlreadyLaunched as known:
        return known.run


def imports_of(team: Team, reader: Reader) -> Iterable[Run]:
    """Imports that wait or work, and the last that did not reach their end."""
    ours = jobs_visible_to(reader).filter(team=team, kind=Kind.IMPORT).order_by("-pk")
    return [*ours.exclude(status__in=OVER), *ours.filter(status__in=SHOWN_AFTER_THE_END)[:3]]

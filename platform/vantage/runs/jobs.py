"""Jobs: runs of a kind other than training. They go through the same queue, lease, supervisor and folder."""

from collections.abc import Iterator
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now
from vantage_trainer.jobspec import JobSpec, OfCheckpoint
from vantage_trainer.refusal import Refusal, refuse

from vantage.nodes.models import Node
from vantage.runs.announce import announce
from vantage.runs.create import Refused, enqueue
from vantage.runs.job_kind import JobKind
from vantage.runs.kinds import dry_run, evaluate, export, import_, rescore
from vantage.runs.models import Attempt, Checkpoint, Run
from vantage.runs.querysets import RunQuerySet, fits
from vantage.runs.states import Kind
from vantage.runs.tasks import nudge_nodes
from vantage.teams.audit import record
from vantage.teams.models import Reader, Team, User

KINDS: dict[str, JobKind] = {
    Kind.EVALUATE: evaluate.KIND,
    Kind.DRY_RUN: dry_run.KIND,
    Kind.RESCORE: rescore.KIND,
    Kind.IMPORT: import_.KIND,
    Kind.EXPORT: export.KIND,
}


def create_job(
    team: Team,
    user: User,
    spec: JobSpec,
    *,
    name: str = "",
    parent: Run | None = None,
    node: Node | None = None,
    priority: int = 0,
    token: UUID | None = None,
) -> Run:
    """Queue a job, the one door for all kinds. Raises Refused with all reasons, AlreadyLaunched for a known token.

    A job with a parent goes to the node that holds the parent's folder; `node` binds one without a parent.
    """
    kind = KINDS[spec.kind]
    if found := job_refusals(team, spec, parent):
        raise Refused(found)
    run = enqueue(
        team,
        user,
        name or name_of(spec, parent),
        token=token,
        kind=spec.kind,
        spec=spec.model_dump(mode="json"),
        datasets=kind.files(team, spec, parent),
        priority=priority,
        parent=parent,
        node=parent.node if parent and kind.needs_folder else node,
    )
    record(team, user, "started job", f"{kind.title}: {run}")
    return run


def job_refusals(team: Team, spec: JobSpec, parent: Run | None) -> list[Refusal]:
    """Everything that can be refused before a node takes the job."""
    found = [*_unfit_parent(team, spec, parent), *KINDS[spec.kind].refusals(team, spec, parent)]
    return found or list(_fits_nowhere(spec))


def name_of(spec: JobSpec, parent: Run | None) -> str:
    """Name a job for what it works on."""
    at = spec.checkpoint if isinstance(spec, OfCheckpoint) else ""
    words = [KINDS[spec.kind].title, *([f"of {parent.name}"[:150]] if parent else []), *([at] if at else [])]
    return " ".join(words)


def jobs_of(run: Run) -> RunQuerySet:
    """The jobs that work on a run, newest first."""
    return Run.objects.filter(parent=run, deleted=None).exclude(kind=Kind.TRAIN).order_by("-pk")


def jobs_visible_to(reader: Reader) -> RunQuerySet:
    return Run.objects.visible_to(reader).exclude(kind=Kind.TRAIN)


def try_again(job: Run) -> bool:
    """Queue a job that failed, was stopped or lost once more, from its beginning; False: it is in none of these."""
    fresh = {"queued": Now(), "ended": None, "code": "", "sentence": "", "num_lost": 0, "stopped_by": None}
    with transaction.atomic():
        if not Run.objects.filter(pk=job.pk, deleted=None).move("resume", **fresh):
            return False
        Attempt.objects.filter(run=job).abandon()
        transaction.on_commit(nudge_nodes)
        transaction.on_commit(lambda: announce(job.pk, job.team_id))
    return True


def kept_checkpoint(run: Run, name: str) -> Checkpoint | None:
    """Return the run's checkpoint of this name, unless it was pruned."""
    return run.checkpoints.filter(folder=f"checkpoints/{name}", pruned=None).order_by("-attempt").first()


def _unfit_parent(team: Team, spec: JobSpec, parent: Run | None) -> Iterator[Refusal]:
    if parent is not None and parent.team_id != team.pk:
        yield refuse("other_team", "", "The run belongs to another team: switch to it, and start the job there.")
    if not isinstance(spec, OfCheckpoint) or not spec.checkpoint:
        return
    if parent is None:
        yield refuse("no_parent", "checkpoint", "A checkpoint belongs to a run: choose the run as well.")
    elif kept_checkpoint(parent, spec.checkpoint) is None or parent.node is None:
        gone = "Run {run} keeps no checkpoint {name} any more: choose another one."
        yield refuse("no_checkpoint", "checkpoint", gone, run=parent.name, name=spec.checkpoint)


def _fits_nowhere(spec: JobSpec) -> Iterator[Refusal]:
    """Refuse what no node could ever take, unless there is no node yet."""
    draft = Run(kind=spec.kind, spec=spec.model_dump(mode="json"))
    nodes = list(Node.objects.filter(removed=None).exclude(devices=[]))
    if nodes and not any(fits(draft, node) for node in nodes):
        yield refuse("fits_nowhere", "resources", "No node has as many devices as this job asks for; ask for fewer.")

"""The one door for new runs: the form, the demo and the API come through here."""

from collections.abc import Iterator
from uuid import UUID

from django.db import transaction
from django.db.models import Max
from vantage_trainer.data_files import data_files, training_files
from vantage_trainer.refusal import Refusal, refuse
from vantage_trainer.refusals import refusals
from vantage_trainer.spec import RunSpec

from vantage.datasets.naming import lookup
from vantage.nodes.models import Node
from vantage.runs.announce import announce
from vantage.runs.forking import fork_refusals, keeps_optimizer
from vantage.runs.models import Run
from vantage.runs.placement import num_needed
from vantage.runs.tasks import nudge_nodes
from vantage.teams.models import Team, User


class Refused(ValueError):
    """The run cannot work as asked; each refusal names its field."""

    def __init__(self, found: list[Refusal]) -> None:
        super().__init__(" ".join(refusal.sentence for refusal in found))
        self.refusals = found


class AlreadyLaunched(ValueError):
    """The same form was launched before."""

    def __init__(self, run: Run) -> None:
        super().__init__(f"This form was launched already, as {run}.")
        self.run = run


def create_run(
    team: Team,
    user: User,
    name: str,
    spec: RunSpec,
    *,
    priority: int = 0,
    tags: list[str] | None = None,
    notes: str = "",
    parent: Run | None = None,
    parent_step: int | None = None,
    optimizer: str = "auto",
    token: UUID | None = None,
) -> Run:
    """Queue a run, or with a parent step a fork. Raises Refused with all reasons, AlreadyLaunched for a known token."""
    fork = (parent, parent_step) if parent is not None and parent_step is not None else None
    if found := all_refusals(team, spec, fork):
        raise Refused(found)
    return enqueue(
        team,
        user,
        name,
        token=token,
        spec=spec.model_dump(mode="json"),
        datasets=_files(team, spec),
        priority=priority,
        tags=tags or [],
        notes=notes,
        parent=parent,
        parent_step=parent_step,
        keeps_optimizer=fork is not None and keeps_optimizer(optimizer, fork[0], spec),
        node=parent.node if parent else None,
    )


def enqueue(team: Team, user: User, name: str, *, token: UUID | None = None, **fields: object) -> Run:
    """Put a run or another job into the queue under the team's next number; AlreadyLaunched for a known token."""
    with transaction.atomic():
        Team.objects.select_for_update().get(pk=team.pk)  # numbers are given out one at a time
        if token is not None and (known := _launched(team, token)):
            raise AlreadyLaunched(known)
        number = (Run.objects.filter(team=team).aggregate(newest=Max("number"))["newest"] or 0) + 1
        chosen = name.strip() or f"run {number}"
        run = Run.objects.create(team=team, number=number, name=chosen, created_by=user, token=token, **fields)
        transaction.on_commit(nudge_nodes)
        transaction.on_commit(lambda: announce(run.pk, team.pk))
    return run


def _launched(team: Team, token: UUID) -> Run | None:
    """Find the run that the form was launched as; a deleted one gives up the token: who repeats it wants another."""
    launched = Run.objects.filter(team=team, token=token)
    launched.exclude(deleted=None).update(token=None)
    return launched.first()


def all_refusals(team: Team, spec: RunSpec, fork: tuple[Run, int] | None = None) -> list[Refusal]:
    """Return the trainer's refusals, and those that only the team's data tell; a fork names its parent and step."""
    found = [*refusals(spec), *_unknown_datasets(team, spec), *_nothing_to_imitate(team, spec), *_fits_nowhere(spec)]
    return found + list(fork_refusals(team, spec, *fork)) if fork else found


def references(spec: RunSpec) -> dict[str, str]:
    """Return every dataset that the run names, by the field that names it."""
    sets = {f"evaluation.sets.{number}.dataset": one.dataset for number, one in enumerate(spec.evaluation.sets)}
    more = {f"data.more.{number}.dataset": one.dataset for number, one in enumerate(spec.data.more)}
    own = {"warm_start.dataset": spec.warm_start.dataset} if spec.warm_start and spec.warm_start.dataset else {}
    return {"data.train": spec.data.train} | more | own | sets


def _files(team: Team, spec: RunSpec) -> dict[str, int]:
    """Return which version becomes which file of the run folder."""
    found = {name: lookup(team, reference) for name, reference in data_files(spec).items()}
    return {name: version.pk for name, version in found.items() if version}


def _unknown_datasets(team: Team, spec: RunSpec) -> Iterator[Refusal]:
    sentence = "The team has no dataset version {reference}; choose one of its datasets."
    for path, reference in references(spec).items():
        if reference.strip() and lookup(team, reference) is None:
            yield refuse("unknown_dataset", path, sentence, reference=reference)


def _nothing_to_imitate(team: Team, spec: RunSpec) -> Iterator[Refusal]:
    sentence = "The warm start imitates worked solutions, and {reference} has none; turn it off or choose other data."
    if spec.warm_start is None:
        return
    named = [spec.warm_start.dataset] if spec.warm_start.dataset else list(training_files(spec).values())
    versions = [version for reference in named if (version := lookup(team, reference))]
    if versions and not any(version.has_solutions for version in versions):
        yield refuse("no_solutions", "warm_start", sentence, reference=" and ".join(map(str, versions)))


def _fits_nowhere(spec: RunSpec) -> Iterator[Refusal]:
    """Refuse what no node could ever take, unless there is no node yet."""
    sentence = "No node has {asked} devices or processor cores to train on; ask for fewer."
    offers = Node.objects.filter(removed=None).exclude(devices=[]).values_list("devices", flat=True)
    if offers and not any(num_needed(spec.resources, devices) for devices in offers):
        asked = max(spec.resources.training_devices, spec.resources.generation_devices)
        yield refuse("fits_nowhere", "resources.training_devices", sentence, asked=asked)

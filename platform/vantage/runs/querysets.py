"""What concerns many runs or attempts at once: which a node may take, claims, leases, fencing."""

from datetime import timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models, transaction
from django.db.models import Count, F, OuterRef, Q, Subquery
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Coalesce, Now
from vantage_trainer.jobspec import WITHOUT_DEVICES
from vantage_trainer.spec import Resources

from vantage.nodes.models import Node
from vantage.runs.placement import num_needed, placed
from vantage.runs.states import ACTIVE, TRANSITIONS, Kind, Outcome, Status
from vantage.teams.models import Reader, TeamQuerySet

if TYPE_CHECKING:
    from vantage.runs.models import Attempt, Run


class RunQuerySet(TeamQuerySet):
    def visible_to(self, reader: Reader) -> "RunQuerySet":
        """Runs of the reader's teams that are not deleted."""
        return super().visible_to(reader).filter(deleted=None)

    def deleted_of(self, reader: Reader) -> "RunQuerySet":
        return super().visible_to(reader).exclude(deleted=None)

    def training(self) -> "RunQuerySet":
        """Runs that train: what lists, counts and comparisons of runs are about."""
        return self.filter(kind=Kind.TRAIN)

    def waiting_for(self, node: Node) -> "RunQuerySet":
        """What the node may take, in order: priority, then the team that runs least, then age."""
        share = self.model.objects.filter(team=OuterRef("team"), status__in=ACTIVE).order_by()
        num_active = Subquery(share.values("team").annotate(num=Count("pk")).values("num"))
        held = Q(node=None) | Q(node=node) | (Q(node__storage=node.storage) & ~Q(node__storage=""))  # Node.carries
        waiting = self.filter(held, status=Status.QUEUED, deleted=None)
        told = {"num_active": Coalesce(num_active, 0), "age": Coalesce("turn", "queued")}
        return waiting.annotate(**told).order_by("-priority", "num_active", "age", "pk")

    def move(self, name: str, **fields: object) -> int:
        """Make a transition of states.py in one UPDATE; returns how many runs were in a state that allows it."""
        sources, target, _ = TRANSITIONS[name]
        return self.filter(status__in=sources).update(status=target, **fields)

    def find(self) -> int:
        """Take up again what was lost only because its node was cut off."""
        return self.move("find", code="", sentence="")

    def claim(self, pk: int, node: Node) -> "Attempt | None":
        """Take a queued run for a node with a lease and devices; None if someone was faster or too few are free."""
        with transaction.atomic():
            node = Node.objects.select_for_update().get(pk=node.pk)  # its devices are given out one claim at a time
            run = self.waiting_for(node).filter(pk=pk).first()
            if run is None or (devices := free_devices(run, node)) is None:
                return None
            begun = {"started": Coalesce("started", Now()), "ended": None, "code": "", "sentence": ""}
            if not self.filter(pk=pk).move("claim", node=node, attempt=F("attempt") + 1, **begun):
                return None
            number = self.values_list("attempt", flat=True).get(pk=pk)
            return run.attempts.create(number=number, node=node, devices=devices, lease_until=lease_end())


class RunRowQuerySet(models.QuerySet):
    """Rows that belong to a run."""

    def visible_to(self, reader: Reader) -> "RunRowQuerySet":
        return self.filter(run__team__in=reader.visible_teams(), run__deleted=None)


class AttemptQuerySet(RunRowQuerySet):
    def live(self) -> "AttemptQuerySet":
        """Attempts that hold devices and a lease, expired or not."""
        return self.filter(outcome=Outcome.LIVE)

    def expired(self) -> "AttemptQuerySet":
        return self.live().filter(lease_until__lt=Now())

    def newest(self) -> "AttemptQuerySet":
        """Attempts that no later one of the same run has fenced off: only they may write."""
        return self.live().filter(number=F("run__attempt"))

    def renew(self, pk: int, supervisor: str) -> bool:
        """Extend the lease; False: the attempt is over or fenced off, and its trainer has to end."""
        ours = self.model.objects.filter(pk__in=self.newest().filter(pk=pk).values("pk"), outcome=Outcome.LIVE)
        renewed = ours.update(lease_until=lease_end(), supervisor=supervisor) == 1
        if renewed:
            runs: RunQuerySet = self.model.run.field.related_model.objects
            runs.filter(attempts=pk).find()
        return renewed

    def abandon(self) -> int:
        """End attempts that live on a silent node: should it come back, they are refused and end their trainer."""
        told = {"code": "abandoned", "sentence": "It was given up while its node was silent."}
        return self.live().update(outcome=Outcome.LOST, ended=Now(), **told)


def lease_end() -> CombinedExpression:
    """Postgres' own clock decides when a lease ends: those of nodes may differ."""
    return Now() + timedelta(seconds=settings.LEASE_SECONDS)


def _resources(run: "Run") -> Resources:
    return Resources.model_validate(run.spec.get("resources", {}))


def needs_devices(run: "Run") -> bool:
    """Whether the run starts an engine; a job that starts none works beside those that do."""
    return run.kind not in WITHOUT_DEVICES


def fits(run: "Run", node: Node) -> bool:
    """Whether the node could ever take the run."""
    if not needs_devices(run):
        return True
    return num_needed(_resources(run), node.devices, generates_only=run.kind == Kind.EVALUATE) > 0


def free_devices(run: "Run", node: Node) -> list[str] | None:
    """Return the devices the run would get; call it while the node's row is locked."""
    return devices_beside(run, node, list(node.attempts.live().values_list("devices", flat=True)))


def devices_beside(run: "Run", node: Node, live: list[list[str]]) -> list[str] | None:
    """Return the devices the run would get beside attempts that hold these; None: it has to wait."""
    if not needs_devices(run):
        return None if [] in live else []  # such jobs go one after another
    taken = {device for devices in live for device in devices}
    return placed(_resources(run), node.devices, taken, generates_only=run.kind == Kind.EVALUATE)

"""Worker nodes: machines that take runs. All teams share them; what they run stays each team's own."""

from datetime import timedelta

from django.db import models
from django.db.models import Q
from django.utils import timezone

from vantage.teams.models import User

SILENT_AFTER = timedelta(seconds=30)  # three heartbeats missed


class NodeQuerySet(models.QuerySet):
    def visible_to(self, reader: User) -> "NodeQuerySet":
        """Every member of any team sees every node; whose runs it works on is told by Run.visible_to."""
        return self.filter(removed=None) if reader.is_authenticated else self.none()

    def alive(self) -> "NodeQuerySet":
        return self.filter(removed=None, heartbeat__gt=timezone.now() - SILENT_AFTER)

    def gone(self) -> "NodeQuerySet":
        """Nodes that have left or are silent."""
        return self.filter(Q(draining=True) | Q(heartbeat__lte=timezone.now() - SILENT_AFTER), removed=None)

    def remove(self) -> int:
        return self.update(removed=timezone.now())


class Node(models.Model):
    """One `vantage node`: its name is its queue."""

    name = models.CharField(max_length=64, unique=True)
    host = models.CharField(max_length=255)
    pid = models.PositiveIntegerField(null=True)
    version = models.CharField(max_length=32)
    devices = models.JSONField(default=list)  # [{"id": "cpu0", "kind": "cpu" | "cuda", "name": ..., "memory": bytes}]
    gone = models.JSONField(default=list)  # devices that were there before its last start, and "gone": since when
    published = models.JSONField(default=list)  # [{"source": "package", "name": ...}] offered in the form
    usage = models.JSONField(default=dict)  # the newest usage.Usage
    history = models.JSONField(default=list)  # [seconds since 1970, {"cpu": share, "memory": share, "cuda0": share}]
    storage = models.CharField(max_length=64, blank=True)  # nodes that name the same storage share run folders
    started = models.DateTimeField(default=timezone.now)
    heartbeat = models.DateTimeField(default=timezone.now)
    paused = models.BooleanField(default=False)
    sends_back = models.BooleanField(default=False)  # while paused: its runs write a checkpoint and are queued again
    draining = models.BooleanField(default=False)
    removed = models.DateTimeField(null=True)
    objects = NodeQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name

    def carries(self, other: "Node | None") -> bool:
        """Whether what lies in the other's folders lies here too; with no other there is nothing to carry."""
        return other is None or other.pk == self.pk or bool(self.storage and self.storage == other.storage)

    @property
    def takes_runs(self) -> bool:
        return not (self.removed or self.silent or self.paused or self.draining)

    @property
    def says(self) -> str:
        """Its state in a word."""
        if self.silent:
            return "silent"
        return "leaving" if self.draining else "paused" if self.paused else "ready"

    @property
    def silent(self) -> bool:
        return self.heartbeat < timezone.now() - SILENT_AFTER

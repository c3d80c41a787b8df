"""What a run can be, and every way from one state to another. Nothing else changes `Run.status`."""

from django.db import models


class Status(models.TextChoices):
    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"
    LOST = "lost"


class Outcome(models.TextChoices):
    """How an attempt ended; empty while it lives."""

    LIVE = "", "live"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"
    LOST = "lost"
    DRAINED = "drained"  # its node was asked to leave: checkpointed, back in the queue


class Kind(models.TextChoices):
    TRAIN = "train"
    EVALUATE = "evaluate"
    DRY_RUN = "dry_run"
    RESCORE = "rescore"
    IMPORT = "import"
    EXPORT = "export"


ACTIVE = (Status.STARTING, Status.RUNNING, Status.STOPPING)  # an attempt holds devices and a lease
OVER = (Status.SUCCEEDED, Status.FAILED, Status.STOPPED)

# name of the transition: (states it may start from, state it ends in, who does it and when)
TRANSITIONS: dict[str, tuple[tuple[str, ...], str, str]] = {
    "claim": ((Status.QUEUED,), Status.STARTING, "a node takes the run and writes a lease"),
    "begin": ((Status.STARTING,), Status.RUNNING, "its supervisor has a living trainer"),
    "withdraw": ((Status.QUEUED, Status.LOST), Status.STOPPED, "a person stops a run that no node works on"),
    "ask_stop": ((Status.STARTING, Status.RUNNING), Status.STOPPING, "a person stops a run at work"),
    "succeed": (ACTIVE, Status.SUCCEEDED, "the trainer reached its budget"),
    "fail": (ACTIVE, Status.FAILED, "the trainer ended with an error"),
    "stop": (ACTIVE, Status.STOPPED, "the trainer stopped as asked"),
    "drain": ((Status.STARTING, Status.RUNNING), Status.QUEUED, "its node leaves; whoever comes next resumes it"),
    "lose": ((Status.STARTING, Status.RUNNING), Status.LOST, "lease expired and trainer lock free"),
    "lose_stopping": ((Status.STOPPING,), Status.STOPPED, "lost while it was being stopped: that was the wish"),
    "silence": ((Status.STARTING, Status.RUNNING), Status.LOST, "its node has been silent for many leases"),
    "find": ((Status.LOST,), Status.RUNNING, "the silent node came back with the attempt alive"),
    "retry": ((Status.LOST,), Status.QUEUED, "a lost run starts again from its last checkpoint"),
    "give_up": ((Status.LOST,), Status.FAILED, "lost too often"),
    "resume": (
        (Status.STOPPED, Status.FAILED, Status.LOST),
        Status.QUEUED,
        "a person continues it from its last checkpoint",
    ),
}

"""Runs, their attempts, and what the trainer reported. Postgres is the truth about all of them."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.urls import reverse

from vantage.nodes.models import Node
from vantage.runs.querysets import AttemptQuerySet, RunQuerySet, RunRowQuerySet
from vantage.runs.states import Kind, Outcome, Status
from vantage.stored import StoredJSON, StoredText
from vantage.teams.models import Team, User


class Run(models.Model):
    """One training run (or another kind of job); `spec` is the whole resolved RunSpec, never rewritten."""

    team = models.ForeignKey(Team, models.CASCADE, related_name="runs")
    number = models.PositiveIntegerField()  # counts from 1 within the team
    name = models.CharField(max_length=200)
    kind = models.CharField(max_length=10, choices=Kind, default=Kind.TRAIN)
    spec = StoredJSON()
    preset = models.GeneratedField(  # to search ten thousand specs without unpacking each
        expression=KeyTextTransform("preset", KeyTransform("algorithm", "spec")),
        output_field=models.TextField(null=True),
        db_persist=True,
    )
    datasets = models.JSONField(default=dict)  # name of a file in the run folder's data/ -> pk of the DatasetVersion
    status = models.CharField(max_length=10, choices=Status, default=Status.QUEUED)
    priority = models.SmallIntegerField(default=0)  # higher goes first
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    created = models.DateTimeField(auto_now_add=True)
    queued = models.DateTimeField(auto_now_add=True)
    turn = models.DateTimeField(null=True)  # counts in place of `queued` where the team has changed its own order
    started = models.DateTimeField(null=True)
    ended = models.DateTimeField(null=True)
    code = models.CharField(max_length=40, blank=True)  # short stable word for how it ended
    sentence = StoredText(blank=True)  # the same for people
    attempt = models.PositiveIntegerField(default=0)  # number of the newest attempt; older ones are fenced off
    num_lost = models.PositiveIntegerField(default=0)  # attempts lost since the last checkpoint that moved it on
    node = models.ForeignKey(Node, models.SET_NULL, null=True, related_name="runs")  # the node that holds its folder
    stopped_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    parent = models.ForeignKey("self", models.SET_NULL, null=True, related_name="forks")
    parent_step = models.PositiveIntegerField(null=True)
    keeps_optimizer = models.BooleanField(default=False)  # a fork goes on with its parent's Adam moments
    tags = ArrayField(models.CharField(max_length=50), default=list, blank=True)
    notes = StoredText(blank=True)
    starred = models.BooleanField(default=False)
    baseline = models.BooleanField(default=False)
    deleted = models.DateTimeField(null=True)
    token = models.UUIDField(null=True)  # of the form it was launched from; null: not from a form
    objects = RunQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["team", "number"], name="one_run_number_per_team"),
            models.UniqueConstraint(fields=["team", "token"], name="one_run_per_launch"),
        ]
        indexes = [
            models.Index(fields=["-priority", "queued"], condition=models.Q(status=Status.QUEUED), name="runs_waiting"),
            models.Index(fields=["status"], name="runs_by_status"),
            models.Index(fields=["team", "-created"], name="runs_newest_first"),
        ]

    def __str__(self) -> str:
        return f"{self.name} #{self.number}"

    def get_absolute_url(self) -> str:
        return reverse("run" if self.kind == Kind.TRAIN else "job", args=[self.pk])

    @property
    def seconds(self) -> float | None:
        """How long it took from its first start to its end."""
        return (self.ended - self.started).total_seconds() if self.started and self.ended else None


class Attempt(models.Model):
    """One try at a run on one node. Its number fences: a writer with an old number is refused."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()
    node = models.ForeignKey(Node, models.SET_NULL, null=True, related_name="attempts")
    devices = models.JSONField(default=list)  # ids of the node's devices it holds while it lives
    outcome = models.CharField(max_length=10, choices=Outcome, default=Outcome.LIVE, blank=True)
    code = models.CharField(max_length=40, blank=True)
    sentence = StoredText(blank=True)
    created = models.DateTimeField(auto_now_add=True)
    started = models.DateTimeField(null=True)
    ended = models.DateTimeField(null=True)
    lease_until = models.DateTimeField()
    supervisor = models.CharField(max_length=100, blank=True)  # host:pid of who renews the lease
    # Steps from resumed_from (null: from the start) to superseded_after (null: no end) are current.
    resumed_from = models.PositiveIntegerField(null=True)
    superseded_after = models.IntegerField(null=True)  # below 0: see prepare.NOTHING
    step = models.PositiveIntegerField(default=0)  # the newest step reported
    offsets = models.JSONField(default=dict)  # bytes of each journal file that are stored
    seqs = models.JSONField(default=dict)  # highest seq stored of each journal file: the cursor of who watches
    repeat = StoredJSON(null=True)  # how what it computed again compares (repeats.Repeat), once that is settled
    objects = AttemptQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "number"], name="one_attempt_per_number")]
        indexes = [
            models.Index(fields=["node"], condition=models.Q(outcome=Outcome.LIVE), name="live_attempts_by_node")
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.run}"


class LogTail(models.Model):
    """The end of an attempt's trainer.log, for a page that may be served on another host."""

    attempt = models.OneToOneField(Attempt, models.CASCADE, primary_key=True, related_name="log")
    text = StoredText(blank=True)
    size = models.BigIntegerField(default=0)  # bytes of the whole file

    def __str__(self) -> str:
        return f"log of {self.attempt}"


class MetricKey(models.Model):
    """A metric's name, stored once."""

    name = models.CharField(max_length=200, unique=True)

    def __str__(self) -> str:
        return self.name


class MetricRow(models.Model):
    """One value. No foreign key is checked per row: runs are deleted softly and keys never."""

    pk = models.CompositePrimaryKey("run_id", "attempt", "key_id", "seq")
    run = models.ForeignKey(Run, models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+")
    key = models.ForeignKey(MetricKey, models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+")
    step = models.IntegerField()
    attempt = models.IntegerField()
    seq = models.IntegerField()
    time = models.FloatField()  # seconds since 1970
    value = models.FloatField()  # NaN and infinities as they are
    objects = RunRowQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(
                fields=["run", "key", "step", "-attempt", "-seq"], include=["time", "value"], name="metric_rows_by_step"
            )
        ]

    def __str__(self) -> str:
        return f"{self.key_id} of run {self.run_id} at {self.step}: {self.value}"


class Reported(models.Model):
    """What samples and events share: one journal line each."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="%(class)ss", db_index=False)
    attempt = models.PositiveIntegerField()
    seq = models.PositiveIntegerField()
    step = models.PositiveIntegerField()
    time = models.FloatField()
    objects = RunRowQuerySet.as_manager()

    class Meta:
        abstract = True
        constraints = [models.UniqueConstraint(fields=["run", "attempt", "seq"], name="one_%(class)s_per_line")]


class Sample(Reported):
    """One completion with its reward; token arrays for a chosen few."""

    prompt_id = StoredText()
    group = models.IntegerField()
    index = models.IntegerField()
    prompt = StoredText()
    text = StoredText()
    num_tokens = models.IntegerField()
    reward = models.FloatField(null=True)  # null: it could not be scored
    parts = StoredJSON(default=dict)
    correct = models.BooleanField(null=True)
    advantage = models.FloatField(null=True)
    finish = models.CharField(max_length=10)
    version = models.IntegerField()
    digest = models.CharField(max_length=32, blank=True, default="")  # of its seed and token ids
    tokens = StoredJSON(null=True)

    class Meta(Reported.Meta):
        indexes = [models.Index(fields=["run", "step", "group", "index"], name="samples_by_step")]

    def __str__(self) -> str:
        return f"sample {self.seq} of run {self.run_id}"


class Event(Reported):
    """Phase, waiting, warning, checkpoint, evaluation, sync, agreement, stage: `data` is the journal line's."""

    kind = models.CharField(max_length=20)
    data = StoredJSON(default=dict)

    class Meta(Reported.Meta):
        indexes = [models.Index(fields=["run", "kind", "step"], name="events_by_kind")]

    def __str__(self) -> str:
        return f"{self.kind} of run {self.run_id}"


class Checkpoint(models.Model):
    """A whole checkpoint in the run folder of the node that holds it."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="checkpoints", db_index=False)
    attempt = models.PositiveIntegerField()
    step = models.PositiveIntegerField()
    folder = models.CharField(max_length=200)  # relative to the run folder
    bytes = models.BigIntegerField(default=0)
    created = models.DateTimeField(auto_now_add=True)
    pruned = models.DateTimeField(null=True)
    objects = RunRowQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "folder", "attempt"], name="one_checkpoint_per_folder")]

    def __str__(self) -> str:
        return f"checkpoint {self.step} of run {self.run_id}"

    @property
    def name(self) -> str:
        return self.folder.removeprefix("checkpoints/")

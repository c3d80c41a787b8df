"""What a job is: work on a run, a model or a dataset that trains nothing. A union by kind; no torch here."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter

from vantage_trainer.spec import (
    Count,
    Data,
    Evaluation,
    EvaluationSet,
    Model,
    Resources,
    Reward,
    Rollout,
    RunSpec,
    Section,
    setting,
)

# Kinds that start no engine: they take none of a node's devices, and one at a time works beside its runs.
WITHOUT_DEVICES = ("rescore", "import", "export")
MOST_TRIED = 12  # problems of a dry run


class AnyJob(Section):
    """What every kind has: the devices that it asks for."""

    schema_version: Literal[1] = 1
    resources: Resources = Resources()


class OfCheckpoint(AnyJob):
    """A kind that works on a checkpoint of its parent, which its node places beside it."""

    checkpoint: Annotated[str, Field(pattern=r"^((start|step)-[0-9]{1,9})?$")] = setting(
        "", "Checkpoint", "A checkpoint of the run; empty: the model as it is"
    )
    model: Model = Model()


class MeasuredSet(EvaluationSet):
    model_config = ConfigDict(title="Evaluation set")

    k: list[Count] = setting([], "k of pass@k", "Empty: 1, 2, 4 and so on, up to the samples per problem")

    def whole(self) -> EvaluationSet:
        """The set with every k named."""
        powers = [2**power for power in range(self.n.bit_length()) if 2**power < self.n]
        return EvaluationSet(**self.model_dump() | {"k": self.k or [*powers, self.n]})


class EvaluateSpec(OfCheckpoint):
    kind: Literal["evaluate"] = "evaluate"
    data: Data = Data()
    reward: Reward = Reward()
    rollout: Rollout = Rollout()
    sets: Annotated[list[MeasuredSet], Field(min_length=1)] = setting([MeasuredSet()], "Sets")
    seed: Annotated[int, Field(ge=0, lt=2**63)] = setting(0, "Seed")

    def as_run(self) -> RunSpec:
        """The run whose evaluation this is."""
        shared = {name: getattr(self, name) for name in ("model", "data", "reward", "rollout", "resources", "seed")}
        return RunSpec(**shared, evaluation=Evaluation(sets=[one.whole() for one in self.sets]))


class ExportSpec(OfCheckpoint):
    kind: Literal["export"] = "export"
    dtype: Literal["float32", "bfloat16"] = setting("float32", "Precision")


class DryRunSpec(OfCheckpoint):
    """A run as it stands in its form; a fork's checkpoint is named, and `model` repeats the run's."""

    kind: Literal["dry_run"] = "dry_run"
    run: RunSpec = RunSpec()
    prompts: Annotated[int, Field(ge=1, le=MOST_TRIED)] = setting(4, "Problems", "The first that the run is given")
    warm_start: bool = setting(True, "Take its warm start first")
    beside: dict[str, str] = setting({}, "What stood in the form beside the run", advanced=True)


class RescoreSpec(AnyJob):
    kind: Literal["rescore"] = "rescore"
    run: RunSpec = RunSpec()
    reward: Reward = Reward()


class HubFile(Section):
    """Rows that lie on the model hub."""

    repository: Annotated[str, Field(min_length=3, max_length=200, pattern=r"^[\w.-]+/[\w.-]+$")] = setting(
        "", "Dataset", "Its name there, such as openai/gsm8k"
    )
    file: Annotated[str, Field(max_length=300)] = setting(
        "", "File", "JSON Lines, JSON or CSV; empty: the only one there is, or the only one of its training part"
    )
    revision: Annotated[str, Field(max_length=100)] | None = setting(None, "Revision", "Empty: the newest")


class ImportSpec(AnyJob):
    """A file to check and store: one that was uploaded, or one on the hub. Columns: see the site's mapping."""

    kind: Literal["import"] = "import"
    name: str = setting("", "Dataset")
    upload: str = ""  # id of the upload
    hub: HubFile | None = None
    columns: dict[str, JsonValue] | None = None  # None: they are guessed
    leave_out: bool = setting(False, "Leave out records that cannot be used")


JobSpec = Annotated[
    EvaluateSpec | ExportSpec | DryRunSpec | RescoreSpec | ImportSpec,
    Field(discriminator="kind"),
]
JOB_SPEC: TypeAdapter[JobSpec] = TypeAdapter(JobSpec)


class JobFile(BaseModel):
    """job.json: what the node's supervisor tells the job. Paths are absolute, on that node."""

    model_config = ConfigDict(extra="forbid")

    spec: JobSpec
    parent: str | None = None  # the run folder of the run that it works on
    checkpoint: str | None = None  # the checkpoint that its spec names: a copy of its own, which nobody prunes

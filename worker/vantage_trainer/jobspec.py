"""What a job is: work on a run, a model or a dataset that trains nothing. A union by kind; no torch here."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

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


class EvaluateSpec(OfCheckpoint):
    kind: Literal["evaluate"] = "evaluate"
    data: Data = Data()
    reward: Reward = Reward()
    rollout: Rollout = Rollout()
    sets: Annotated[list[EvaluationSet], Field(min_length=1)] = setting([EvaluationSet()], "Sets")
    seed: Annotated[int, Field(ge=0, lt=2**63)] = setting(0, "Seed")

    def as_run(self) -> RunSpec:
        """The run whose evaluation this is."""
        shared = {name: getattr(self, name) for name in ("model", "data", "reward", "rollout", "resources", "seed")}
        return RunSpec(**shared, evaluation=Evaluation(sets=self.sets))


class ExportSpec(OfCheckpoint):
    kind: Literal["export"] = "export"
    dtype: Literal["float32", "bfloat16"] = setting("float32", "Precision")


class DryRunSpec(AnyJob):
    kind: Literal["dry_run"] = "dry_run"
    run: RunSpec = RunSpec()
    steps: Count = setting(1, "Steps")


class RescoreSpec(AnyJob):
    kind: Literal["rescore"] = "rescore"
    reward: Reward = Reward()


class ImportSpec(AnyJob):
    kind: Literal["import"] = "import"
    model: Model = Model(source="folder", name="")


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

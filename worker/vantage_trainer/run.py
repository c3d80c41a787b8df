"""One attempt at a run while it lives: its parts, its progress, and what stages share."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pydantic import JsonValue

from vantage_trainer import checkpoint
from vantage_trainer.checkpoint import Snapshot
from vantage_trainer.data import Cursor, Problem, Tokenizer
from vantage_trainer.evaluate import Evaluation, evaluate
from vantage_trainer.failure import Failure
from vantage_trainer.generation import Generator
from vantage_trainer.journal import Journal
from vantage_trainer.policy import Policy
from vantage_trainer.progress import Progress
from vantage_trainer.rollout import Sampler, seed_of
from vantage_trainer.spec import RunSpec
from vantage_trainer.stopping import Stop


@dataclass
class Run:
    """Everything a stage works with."""

    folder: Path
    spec: RunSpec
    journal: Journal
    stop: Stop
    policy: Policy
    generator: Generator
    sampler: Sampler
    tokenizer: Tokenizer
    problems: list[Problem]
    imitated: list[Problem]
    heldout: dict[str, list[Problem]]
    progress: Progress
    started: float = field(default_factory=time.monotonic)
    saved: float = field(default_factory=time.monotonic)
    version: int = 0
    kept: tuple[str, int] | None = None

    def cursor(self) -> Cursor:
        """Stand where the last finished step left the data."""
        seed = self.spec.data.shuffle_seed
        shuffle = self.spec.seed if seed is None else seed
        return Cursor(self.problems, shuffle, self.progress.cursor, self.progress.retired)

    def seed_of(self, *parts: object) -> int:
        return seed_of(self.spec.seed, *parts)

    def sample_seed(self, step: int, group: int, problem: Problem, index: int) -> int:
        return self.seed_of(step, group, problem.id, index)

    def phase(self, name: str, done: int | None = None, total: int | None = None) -> None:
        self.journal.phase(self.progress.step, name, done, total)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Add the wall time of what happens inside to the run's device time."""
        resources = self.spec.resources
        began = time.perf_counter()
        yield
        devices = resources.training_devices + resources.generation_devices
        self.progress.device_seconds += (time.perf_counter() - began) * devices

    def sync(self) -> float:
        """Give the generator the policy's weights and prove that it uses them; returns the seconds it took."""
        self.phase("syncing")
        began = time.perf_counter()
        self.version += 1
        report = self.generator.push(self.policy.weights(), self.version)
        self.journal.event(self.progress.step, "sync", {**asdict(report)})
        return time.perf_counter() - began

    def save(self) -> None:
        """Write a checkpoint of this moment, unless there is one."""
        moment = (self.progress.stage, self.progress.step)
        if moment == self.kept:
            return
        self.phase("checkpointing")
        critic = self.policy.critic if self.progress.stage == "rl" else None
        snapshot = Snapshot(
            self.progress,
            self.policy.state(),
            self.policy.random_states(),
            self.policy.reference_weights(),
            None if critic is None else critic.state(),
        )
        settings = self.spec.checkpoint
        folder = checkpoint.save(
            self.folder / "checkpoints", snapshot, keep_last=settings.keep_last, keep_best=settings.keep_best
        )
        self.saved, self.kept = time.monotonic(), moment
        name, size = f"checkpoints/{folder.name}", checkpoint.size(folder)
        told: dict[str, JsonValue] = {"step": moment[1], "stage": moment[0], "folder": name, "bytes": size}
        self.journal.event(self.progress.step, "checkpoint", told)

    def evaluate(self) -> dict[str, float]:
        """Evaluate on all held-out sets; returns the metrics."""
        began = time.perf_counter()
        values = self.evaluate_as()
        if values:
            self.progress.score = values[f"eval/{self.spec.evaluation.sets[0].name}/mean"]
            values["time/evaluate"] = time.perf_counter() - began
        return values

    def evaluate_as(self, name: str = "eval") -> dict[str, float]:
        """Evaluate on all held-out sets; the metrics' names begin with this one."""
        values: dict[str, float] = {}
        for part in self.spec.evaluation.sets:
            self.phase("evaluating")
            with self.stop.abandonable():
                found = evaluate(part, self.heldout[part.name], self.sampler, self.seed_of)
            self._report(found)
            values |= found.metrics(name)
        return values

    def _report(self, found: Evaluation) -> None:
        step = self.progress.step
        if not found.n:
            raise Failure("reward_failed", f"No sample of the evaluation set {found.name} could be scored.")
        self.journal.event(step, "evaluation", found.event() | {"stage": self.progress.stage})
        if found.unscored:
            self.journal.warning(
                step, f"{found.unscored} problems of {found.name} could not be scored and are left out."
            )

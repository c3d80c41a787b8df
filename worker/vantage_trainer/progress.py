"""How far a run has come: everything but tensors that a later attempt needs to go on exactly."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Stage = Literal["warm_start", "rl"]


@dataclass
class Progress:
    """Committed at the end of each step, so that an abandoned step leaves no trace; counters are over current steps.

    `score` is the held-out accuracy of exactly these weights, where it is known.
    """

    stage: Stage = "warm_start"
    step: int = 0
    cursor: int = 0
    ema: float = 0.0
    generated: int = 0
    trained: int = 0
    flops: float = 0.0
    device_seconds: float = 0.0
    skipped: int = 0
    evaluated: int = -1
    score: float | None = None
    history: dict[str, list[int]] = field(default_factory=dict)
    retired: list[str] = field(default_factory=list)

    @property
    def folder(self) -> str:
        """Name the checkpoint of this moment; names sort in the order of a run."""
        return f"step-{self.step:06d}" if self.stage == "rl" else f"start-{self.step:06d}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "Progress":
        return cls(**content)

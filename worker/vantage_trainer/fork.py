"""A fork begins with the weights of another run's checkpoint, which its supervisor has placed in the run folder."""

import json
from dataclasses import dataclass
from pathlib import Path

from vantage_trainer import checkpoint
from vantage_trainer.checkpoint import Snapshot
from vantage_trainer.critic import Critic
from vantage_trainer.progress import Progress
from vantage_trainer.run import Run

PLACE = "parent"  # holds fork.json and the checkpoint that it names


@dataclass(frozen=True)
class Fork:
    """Where a run begins instead of at the model's own weights."""

    snapshot: Snapshot
    keep_optimizer: bool
    checkpoint: str


def read(folder: Path) -> Fork | None:
    """Read what the run folder holds of a parent; None: the run is no fork."""
    told = folder / PLACE / "fork.json"
    if not told.exists():
        return None
    content = json.loads(told.read_text())
    name = content["checkpoint"]
    return Fork(checkpoint.load(folder / PLACE / name), content["keep_optimizer"], name)


def begin(run: Run, fork: Fork) -> None:
    """Take over the parent's weights at step 0, without a warm start; its optimizer's moments if that was chosen."""
    checkpoint.check_fits(fork.snapshot, dict(run.policy.weights()))
    run.policy.load_state(fork.snapshot.adam)
    if not fork.keep_optimizer:
        run.policy.fresh_optimizer()
    if run.policy.critic is not None:
        _begin_critic(run, run.policy.critic, fork)
    run.progress = Progress(stage="rl")
    run.journal.event(0, "forked", {"checkpoint": fork.checkpoint, "keep_optimizer": fork.keep_optimizer})


def _begin_critic(run: Run, critic: Critic, fork: Fork) -> None:
    """Take over the parent's critic where it had one, else begin with a copy of the policy's body."""
    critic.begin(run.policy.weights())
    if fork.snapshot.critic is not None:
        critic.load_state(fork.snapshot.critic)
        if not fork.keep_optimizer:
            critic.fresh_optimizer()

"""A fork: a new run that begins with the weights of a checkpoint of another one."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from vantage_trainer.refusal import Refusal, refuse
from vantage_trainer.spec import RunSpec

from vantage.runs.folder import STEPS, RunFolder
from vantage.runs.models import Checkpoint, Run
from vantage.teams.models import Team

Choice = Literal["auto", "keep", "fresh"]  # what becomes of the parent's optimizer state
MODEL = ("source", "name", "revision", "lora")  # what makes it another model: its weights would not fit
OPTIMIZER = ("learning_rate", "betas", "eps", "weight_decay")  # what Adam's moments were gathered under


def checkpoint_of(parent: Run, step: int) -> Checkpoint | None:
    """Return the kept checkpoint after this training step."""
    kept = parent.checkpoints.filter(step=step, folder__contains=STEPS, pruned=None)
    return kept.order_by("-attempt").first()


def fork_refusals(team: Team, spec: RunSpec, parent: Run, step: int) -> Iterator[Refusal]:
    """Say why the run cannot begin with that checkpoint."""
    if parent.team_id != team.pk:
        yield refuse("fork_of_other_team", "", "The parent belongs to another team: switch to it, and fork there.")
    if checkpoint_of(parent, step) is None or parent.node is None:
        kept = "Run {run} keeps no checkpoint of step {step} any more: fork from another one."
        yield refuse("no_checkpoint", "", kept, run=parent.name, step=step)
    ours, theirs = spec.model.model_dump(), RunSpec.model_validate(parent.spec).model.model_dump()
    for name in MODEL:
        if ours[name] != theirs[name]:
            same = "A fork begins with its parent's weights, so the model has to be the same: set this to {value}."
            yield refuse("other_model", f"model.{name}", same, value=_shown(theirs[name]))
    if spec.warm_start is not None:
        without = "A fork begins with its parent's weights, so it has no warm start: choose none."
        yield refuse("fork_with_warm_start", "warm_start", without)


def keeps_optimizer(choice: str, parent: Run, spec: RunSpec) -> bool:
    """Resolve the choice: unless it is made, the state is kept where the optimizer's settings are the parent's."""
    if choice in ("keep", "fresh"):
        return choice == "keep"
    ours, theirs = spec.optimization, RunSpec.model_validate(parent.spec).optimization
    return all(getattr(ours, name) == getattr(theirs, name) for name in OPTIMIZER)


def place_parent(run: Run, folder: RunFolder) -> None:
    """Put the parent's checkpoint into a fork's folder, whole or not at all; OSError says why it cannot be."""
    if run.parent_id is None or run.parent_step is None or folder.parent.exists():
        return
    name = f"{STEPS}{run.parent_step:06d}"
    source = RunFolder.of(run.parent_id).path / "checkpoints" / name
    if not source.is_dir():
        raise FileNotFoundError(f"the checkpoint of step {run.parent_step} of its parent is gone: fork from another.")
    told = {"checkpoint": name, "keep_optimizer": run.keeps_optimizer}
    place_checkpoint(source, folder.parent, {"fork.json": told})


def place_checkpoint(source: Path, target: Path, beside: dict[str, object] | None = None) -> None:
    """Give a folder a checkpoint of its own, and JSON files beside it; whole or not at all. OSError says why not."""
    if not source.is_dir():
        raise FileNotFoundError(f"the checkpoint {source.name} of its parent is gone: choose another one.")
    draft = target.with_name(f".{target.name}.partial")
    shutil.rmtree(draft, ignore_errors=True)
    shutil.copytree(source, draft / source.name, copy_function=_link)
    for name, told in (beside or {}).items():
        (draft / name).write_text(json.dumps(told))
    shutil.rmtree(target, ignore_errors=True)
    draft.rename(target)


def _link(source: str, target: str) -> None:
    """Share the bytes, since a checkpoint's files never change; copy where the file system cannot."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(Path(source), Path(target))


def _shown(value: object) -> str:
    return "empty" if value is None else str(value)

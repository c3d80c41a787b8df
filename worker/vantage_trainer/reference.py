"""The reference policy: the run's own start or a folder's weights, and renewed from the policy every so many steps."""

from pathlib import Path

from torch import Tensor

from vantage_trainer.failure import Failure
from vantage_trainer.model_source import checked
from vantage_trainer.run import Run
from vantage_trainer.trained_model import load


def begin(run: Run) -> None:
    """Freeze what the spec names, before the first step; later it comes from the checkpoint."""
    settings = run.spec.reference
    if settings.source == "start":
        run.policy.freeze_reference()
    elif settings.source == "path":
        run.policy.freeze_reference(weights_of(run, Path(settings.path or "").expanduser()))


def refresh_when_due(run: Run) -> None:
    """Make the policy of this moment the reference (ProRL, arXiv:2505.24864, resets it so)."""
    settings, step = run.spec.reference, run.progress.step
    if settings.source != "none" and settings.refresh_every is not None and step % settings.refresh_every == 0:
        run.policy.freeze_reference()
        run.journal.event(step, "reference", {"refreshed_after": step})


def weights_of(run: Run, folder: Path) -> dict[str, Tensor]:
    """Read a folder's weights; Failure when they are not of the run's model."""
    if not folder.is_dir():
        raise Failure("no_reference", f"The reference's folder {folder} does not exist on this node: check the path.")
    given = dict(load(checked(folder), run.spec).named_parameters())
    ours = dict(run.policy.weights())
    different = sorted(
        name
        for name in ours.keys() | given.keys()
        if name not in ours or name not in given or ours[name].shape != given[name].shape
    )
    if different:
        raise Failure(
            "other_reference",
            f"The reference in {folder} is another model than the policy: {different[0]} differs in name or shape.",
        )
    return {name: value.detach() for name, value in given.items()}

"""The run that is killed: the demo with phases long enough to be met, and checkpoints often."""

from vantage.datasets.generators import create_generated
from vantage.runs.create import create_run
from vantage.runs.models import Run
from vantage.teams.models import Membership, Team, User
from vantage_trainer import recipes
from vantage_trainer.spec import RunSpec, WarmStart

EVERY_STEPS = 2
EVERY_MINUTES = 0.2
ENDLESS = 100_000
WARM_STEPS = 400


def recipe() -> RunSpec:
    """Four-digit sums, evaluated and checkpointed every other step, in the warm start by the clock."""
    spec = recipes.demo_spec()
    spec.warm_start = WarmStart(steps=WARM_STEPS, batch=64, learning_rate=2e-3)
    spec.evaluation.every_steps = EVERY_STEPS
    spec.evaluation.sets = spec.evaluation.sets[:1]
    spec.checkpoint.every_steps, spec.checkpoint.every_minutes = EVERY_STEPS, EVERY_MINUTES
    spec.budget.steps = ENDLESS
    return spec


def queue(name: str) -> Run:
    """Queue one; the first makes the team and the data."""
    team, _ = Team.objects.get_or_create(slug="kills", defaults={"name": "Kills"})
    user, _ = User.objects.get_or_create(username="killer")
    Membership.objects.get_or_create(team=team, user=user)
    for sums in (recipes.DEMO_TRAIN, recipes.DEMO_HELDOUT):
        create_generated(team, user, sums.name, "arithmetic", sums.parameters())  # a second time finds the first
    return create_run(team, user, name, recipe())

"""The demo run: a run like any other, with the data it needs."""

from vantage_trainer.recipes import DEMO_HELDOUT, DEMO_TRAIN, Sums, demo_spec

from vantage.datasets.generators import create_generated
from vantage.runs.create import create_run
from vantage.runs.models import Run
from vantage.teams.models import Team, User

DEMO_TAG = "demo"


def queue_demo(team: Team, user: User) -> Run:
    """Make the demo's datasets, where the team lacks them, and queue the run."""
    spec = demo_spec()
    spec.data.train = _dataset(team, user, DEMO_TRAIN)
    for one in spec.evaluation.sets:
        one.dataset = _dataset(team, user, DEMO_HELDOUT)
    return create_run(team, user, "Demo: sums with GRPO", spec, tags=[DEMO_TAG])


def _dataset(team: Team, user: User, sums: Sums) -> str:
    version, _ = create_generated(team, user, sums.name, "arithmetic", sums.parameters())
    return str(version)

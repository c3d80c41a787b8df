"""Parts of a reward whose parameters their kind does not accept."""

from collections.abc import Iterator

from vantage_trainer.refusal import Refusal, RunCheck, refuse
from vantage_trainer.rewards.scoring import Scorer
from vantage_trainer.spec import Reward, RunSpec


def wrong_parameters(spec: RunSpec) -> Iterator[Refusal]:
    for number, part in enumerate(spec.reward.parts):
        try:
            Scorer(Reward(parts=[part]))
        except ValueError as fault:
            path = f"reward.parts.{number}.parameters"
            yield refuse("bad_reward_parameter", path, "{fault}", fault=str(fault))


CHECKS: tuple[RunCheck, ...] = (wrong_parameters,)

"""Learning rates by step."""

import math

from vantage_trainer.spec import Optimization, WarmStart

WARM_START_RISE = 0.05
WARM_START_FLOOR = 0.1


def learning_rate(settings: Optimization, step: int, last: int) -> float:
    """Return the rate of a step counted from 1: a linear rise over the warm-up, then the schedule down to 0."""
    rise = min(1.0, step / (settings.warmup_steps + 1))
    done = max(0, step - 1 - settings.warmup_steps) / max(1, last - settings.warmup_steps)
    fall = {"constant": 1.0, "linear": 1 - done, "cosine": (1 + math.cos(math.pi * done)) / 2}[settings.schedule]
    return settings.learning_rate * rise * fall


def critic_rate(settings: Optimization, rate: float) -> float:
    """Return the critic's rate where the policy has this one: the same schedule from a peak of its own."""
    own = settings.critic_learning_rate
    return rate if own is None else rate * (own / settings.learning_rate)


def warm_start_rate(settings: WarmStart, step: int) -> float:
    """Rise over the first steps, then fall along a cosine to a tenth."""
    rise = min(1.0, step / max(1.0, WARM_START_RISE * settings.steps))
    cosine = (1 + math.cos(math.pi * (step - 1) / settings.steps)) / 2
    return settings.learning_rate * rise * (WARM_START_FLOOR + (1 - WARM_START_FLOOR) * cosine)

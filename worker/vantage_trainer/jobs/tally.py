"""Counts and averages of scored completions, as a page shows them above the completions themselves."""

import math
from collections import Counter
from collections.abc import Sequence

from pydantic import JsonValue

from vantage_trainer.report import groups, signals
from vantage_trainer.rollout import Response

MOST_CAUSES = 10


def tally(responses: list[Response]) -> dict[str, JsonValue]:
    """Count and average: correctness, causes of failure, classes of groups, lengths, time per reward call."""
    scored = [response for response in responses if not response.errored]
    causes = Counter(response.score.cause[:300] for response in responses if response.errored)
    return {
        "num_groups": len(groups(responses)),
        "num_responses": len(responses),
        "num_scored": len(scored),
        "num_correct": sum(bool(response.score.correct) for response in scored),
        "reward": mean([response.score.reward or 0.0 for response in scored]),
        "signal": {name.removeprefix("signal/"): share for name, share in signals(responses).items()},
        "causes": [[cause, number] for cause, number in causes.most_common(MOST_CAUSES)],
        "lengths": lengths(responses),
        "seconds": seconds(responses),
    }


def lengths(responses: list[Response]) -> dict[str, JsonValue]:
    """Estimate how long responses are, in tokens; those cut at the limit would have gone on."""
    found = sorted(len(response.token_ids) for response in responses)
    return {
        "mean": mean(found),
        "median": found[(len(found) - 1) // 2],
        "p90": found[math.ceil(0.9 * len(found)) - 1],
        "max": found[-1],
        "num_cut": sum(response.truncated for response in responses),
    }


def seconds(responses: list[Response]) -> dict[str, JsonValue]:
    """Tell of each reward part what its calls took: [mean, longest]."""
    taken: dict[str, list[float]] = {}
    for response in responses:
        for name, spent in response.score.seconds.items():
            taken.setdefault(name, []).append(spent)
    return {name: [mean(spent), max(spent)] for name, spent in taken.items()}


def mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None

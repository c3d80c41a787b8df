"""One stored step as a file that `python -m vantage_trainer.objective` reads, for --algorithm and --batch alike."""

import math

from vantage_trainer.composition import Algorithm
from vantage_trainer.rewards.scoring import part_names
from vantage_trainer.spec import RewardPart, RunSpec

from vantage.runs.models import Sample
from vantage.runs.step_tokens import Column, column, texts

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
COLUMNS = {  # name in the file: name in the journal
    "logp_new": "logp",
    "logp_old": "old",
    "logp_behav": "behaviour",
    "logp_ref": "ref",
    "entropy": "entropy",
    "value_old": "value",
}
NOTE = (
    "One step as one optimizer step. Rewards and lengths are of all its responses; tokens are listed of those that "
    "were inspected, so the loss and its gradient are the share of these."
)


def exported(samples: list[Sample], spec: RunSpec) -> dict[str, Json]:
    """The step of a run: all rewards, and the log-probabilities that were stored."""
    inputs: dict[str, Json] = {
        "response_limit": spec.rollout.response_limit,
        "group": [sample.group for sample in samples],
        "reward": [raw_reward(sample, spec.reward.parts) for sample in samples],
        "correct": [int(bool(sample.correct)) for sample in samples],
        "truncated": [int(sample.finish == "length") for sample in samples],
        "length": [sample.num_tokens for sample in samples],
        "response_mask": [[1] * len(texts(sample)) for sample in samples],
    }
    algorithm: Json = Algorithm.model_dump(spec.algorithm, mode="json")
    return {"note": NOTE, "algorithm": algorithm, "inputs": inputs | columns(samples)}


def columns(samples: list[Sample]) -> dict[str, Json]:
    """Each column that every inspected answer has."""
    found: dict[str, Json] = {}
    for name, stored in COLUMNS.items():
        rows: list[Column] = [column(sample, stored, len(texts(sample))) for sample in samples]
        if any(rows) and all(value is not None for row in rows for value in row):
            found[name] = [[*row] for row in rows]
    return found


def raw_reward(sample: Sample, parts: list[RewardPart]) -> float | None:
    """The verifier's reward before shaping and KL, which the objective applies itself."""
    names = part_names(parts)
    told: dict[str, object] = sample.parts if isinstance(sample.parts, dict) else {}
    values = [float(value) for name in names if isinstance(value := told.get(name), (int, float))]
    if sample.reward is None:
        return None
    if len(values) == len(parts):
        total = math.fsum(part.weight * value for part, value in zip(parts, values, strict=True))
        return total if math.isfinite(total) else None
    return sample.reward if math.isfinite(sample.reward) else None

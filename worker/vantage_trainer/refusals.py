"""Everything that can be refused before a run starts, and what deserves a word. No torch here.

`refusals` and `pointless` ask the tables of checks; `explain` is for what the schema itself refuses.
"""

from pydantic import BaseModel, ValidationError

from vantage_trainer import (
    chat_template,
    meaningless,
    refused_compositions,
    refused_datasets,
    refused_rewards,
    refused_runs,
    unavailable,
    unlikely,
)
from vantage_trainer.composition import Algorithm
from vantage_trainer.explained import explained
from vantage_trainer.refusal import Refusal
from vantage_trainer.spec import RunSpec


def composition_refusals(algorithm: Algorithm) -> list[Refusal]:
    """Refuse a composition for what it is, whatever run it is used in."""
    return [refusal for check in refused_compositions.CHECKS for refusal in check(algorithm)]


def refusals(spec: RunSpec) -> list[Refusal]:
    """Refuse a run; empty: it may start. A run without refusals can still fail on its data or machine."""
    by_part = (refused_runs, refused_datasets, refused_rewards, chat_template)
    checks = [*(check for part in by_part for check in part.CHECKS), unavailable.not_yet]
    return composition_refusals(spec.algorithm) + [refusal for check in checks for refusal in check(spec)]


def pointless(spec: RunSpec) -> list[Refusal]:
    """Point out options that the rest of the run makes meaningless, and what rarely ends well; they stop nothing."""
    return [note for check in (*meaningless.CHECKS, *unlikely.CHECKS) for note in check(spec)]


def explain(error: ValidationError, root: type[BaseModel] = RunSpec) -> list[Refusal]:
    """Turn what the schema refuses into the same shape: a field and a sentence."""
    return explained(error, root)

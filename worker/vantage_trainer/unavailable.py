"""Settings that the spec knows and this version's trainer does not carry out yet: refused, never ignored."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from vantage_trainer.refusal import Refusal, refuse
from vantage_trainer.spec import RunSpec


@dataclass(frozen=True)
class Missing:
    """A field, when it asks for what is missing, what that is and how to do without."""

    path: str
    asked: Callable[[RunSpec], bool]
    what: str
    instead: str


MISSING = (
    Missing("model.lora", lambda spec: spec.model.lora is not None, "LoRA", "leave it empty to train all weights"),
    Missing(
        "data.difficulty",
        lambda spec: spec.data.difficulty is not None,
        "The difficulty filter",
        "leave it empty and filter the dataset before uploading it",
    ),
    Missing(
        "algorithm.trust_region.form",
        lambda spec: getattr(spec.algorithm.trust_region, "form", "") == "topk",
        "Recording the generator's top tokens",
        "choose the form binary; the objective of a batch that holds them can be computed",
    ),
    Missing(
        "resources.staleness",
        lambda spec: spec.resources.staleness > 0,
        "Asynchronous training",
        "set the staleness to 0",
    ),
    Missing("resources.hosts", lambda spec: spec.resources.hosts > 1, "Training over several hosts", "set it to 1"),
)


def not_yet(spec: RunSpec) -> Iterator[Refusal]:
    for missing in MISSING:
        if missing.asked(spec):
            sentence = "{what} is not available in this version; {instead}."
            yield refuse("unavailable", missing.path, sentence, what=missing.what, instead=missing.instead)

"""Sentences of the trainer in the words of the form: its internal names stay beside them, for files and the API."""

import re

from vantage_trainer.composition import Algorithm
from vantage_trainer.refusals import composition_refusals, refusals
from vantage_trainer.spec import RunSpec

from vantage.algorithms.words import WORDS
from vantage.form_shapes import fields_of

NAMES = {
    kind: WORDS[part.__name__][0]
    for shape in fields_of(Algorithm)
    for kind, part in shape.variants.items()
    if "_" in kind and part.__name__ in WORDS  # one word alone, as `mask`, can be plain English
}
NAME = re.compile(r"\b(" + "|".join(NAMES) + r")\b")
NOT_YET = "cannot be trained yet"


def spoken(sentence: str) -> str:
    """Write `Group mean (group_mean)` where the trainer says group_mean."""
    return NAME.sub(lambda found: f"{NAMES[found[0]]} ({found[0]})", sentence)


def not_yet(algorithm: Algorithm) -> list[str]:
    """Why this version refuses every run with the algorithm, in sentences."""
    missing = [one for one in refusals(RunSpec(algorithm=algorithm)) if one.code == "unavailable"]
    return [spoken(one.sentence) for one in [*composition_refusals(algorithm), *missing]]

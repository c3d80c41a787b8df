"""Which datasets belong together, told by their names: sums with sums-heldout, gsm8k-train with gsm8k-test."""

import re

from vantage.datasets.models import DatasetVersion

WORD = r"(?<![a-z]){}(?![a-z])"
HELD_OUT = re.compile(WORD.format(r"(held[-_. ]?out|test|eval|evaluation|valid|validation|dev)"), re.IGNORECASE)
TRAIN = re.compile(WORD.format(r"(train|training)"), re.IGNORECASE)


def is_held_out(version: DatasetVersion) -> bool:
    return HELD_OUT.search(version.dataset.name) is not None


def stem(version: DatasetVersion) -> str:
    """The name without the word that says what it is for."""
    return re.sub(r"[^a-z0-9]+", " ", TRAIN.sub("", HELD_OUT.sub("", version.dataset.name.lower()))).strip()


def pair(versions: list[DatasetVersion]) -> tuple[DatasetVersion | None, DatasetVersion | None]:
    """The newest training version that has a held-out partner and the newest of those; else none to evaluate on."""
    to_train = [one for one in versions if not is_held_out(one)]
    partners = {stem(one): one for one in reversed(versions) if is_held_out(one)}
    trained = next((one for one in to_train if stem(one) in partners), None)
    if trained is not None:
        return trained, partners[stem(trained)]
    return next(iter(to_train or versions), None), None

"""Held-out problems that training holds too are found, and told before a run is launched."""

from collections.abc import Callable
from typing import Any

from django.test import Client
from vantage.datasets.models import DatasetVersion
from vantage.datasets.overlap import overlap
from vantage.datasets.problems import NewRow
from vantage.datasets.store import create_version
from vantage.runs.overlaps import overlaps
from vantage_trainer.recipes import demo_spec
from vantage_trainer.spec import EvaluationSet, TrainingSet

SHARED = "Joan found 70 shells on the beach. How many are left?"
HELD_OUT = [
    "Mia has 3 red cats and 4 blue ones. How many has she?",
    SHARED,
    "joan found 70 shells  on the beach . How many are left ?",
    "Joan found 12 shells on the beach. How many are left?",
    "1 - 2 =",
]


def version(people: Any, name: str, *prompts: str) -> DatasetVersion:
    return create_version(people.team, people.member, name, [NewRow(prompt, "1") for prompt in prompts], {})[0]


def test_each_row_is_counted_once_under_its_closest_likeness(people: Any) -> None:
    training = version(people, "train", SHARED, "1 + 2 =")
    found = overlap([training], version(people, "held-out", *HELD_OUT))
    assert (found.same, found.retyped, found.renumbered) == ([2], [3], [4])
    assert found.sentence == (
        "1 word for word (row 2), 1 but for case, spacing and punctuation (row 3), 1 but for the numbers (row 4)"
    )


def test_many_rows_are_counted_and_the_first_named(people: Any) -> None:
    prompts = [f"There are {number} cards in the box. How many cards?" for number in range(30)]
    found = overlap([version(people, "a", *prompts)], version(people, "b", *prompts, "another"))
    assert found.sentence.startswith("30 word for word (rows 1, 2, 3,") and "and 10 more" in found.sentence


def test_the_form_tells_what_any_of_the_training_datasets_shares(people: Any, client_of: Callable[..., Client]) -> None:
    for name, prompts in {"sums": ["a b c d"], "more": [SHARED], "held-out": HELD_OUT}.items():
        version(people, name, *prompts)
    spec = demo_spec()
    spec.warm_start, spec.data.train, spec.data.more = None, "sums@1", [TrainingSet(dataset="more@1")]
    spec.evaluation.sets = [EvaluationSet(dataset="held-out@1")]
    [note] = overlaps(people.team, spec)
    assert note.path == "evaluation.sets.0.dataset"
    assert note.sentence.startswith("Of the 5 problems of held-out@1, training holds 1 word for word (row 2)")
    spec.data.more = []
    assert not list(overlaps(people.team, spec))
    posted = {"data.train": "more@1", "evaluation.sets.0.dataset": "held-out@1", "evaluation.sets.0.name": "heldout"}
    told = client_of(people.member).post("/runs/new/check/", posted).json()
    assert any("training holds 1 word for word" in str(sentences) for sentences in told["notes"].values())

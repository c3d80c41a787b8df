"""Datasets and evaluation sets that a run cannot do without, or cannot use as asked."""

from collections import Counter
from collections.abc import Iterator

from vantage_trainer.refusal import Refusal, RunCheck, refuse
from vantage_trainer.spec import RunSpec


def no_training_data(spec: RunSpec) -> Iterator[Refusal]:
    if not spec.data.train.strip():
        yield refuse("no_training_data", "data.train", "Choose the dataset to train on.")


def more_training_data(spec: RunSpec) -> Iterator[Refusal]:
    known = {spec.data.train}
    for number, one in enumerate(spec.data.more):
        path = f"data.more.{number}.dataset"
        if not one.dataset.strip():
            yield refuse("no_training_data", path, "Choose the dataset to train on too, or remove it.")
        elif one.dataset in known:
            yield refuse("trained_on_twice", path, "{dataset} is trained on already; remove it.", dataset=one.dataset)
        known.add(one.dataset)


def difficulty_crossed(spec: RunSpec) -> Iterator[Refusal]:
    if spec.data.difficulty is not None and spec.data.difficulty[0] > spec.data.difficulty[1]:
        yield refuse(
            "bounds_crossed",
            "data.difficulty",
            "The smallest success rate {low:g} lies above the largest {high:g}; swap them.",
            low=spec.data.difficulty[0],
            high=spec.data.difficulty[1],
        )


def no_evaluation_data(spec: RunSpec) -> Iterator[Refusal]:
    for number, chosen in enumerate(spec.evaluation.sets):
        if not chosen.dataset.strip():
            yield refuse(
                "no_evaluation_data",
                f"evaluation.sets.{number}.dataset",
                "Choose the dataset of the evaluation set {name}, or remove the set.",
                name=chosen.name,
            )


def same_name_twice(spec: RunSpec) -> Iterator[Refusal]:
    counts = Counter(chosen.name for chosen in spec.evaluation.sets)
    for number, chosen in enumerate(spec.evaluation.sets):
        if counts[chosen.name] > 1:
            yield refuse(
                "same_name_twice",
                f"evaluation.sets.{number}.name",
                "{count} evaluation sets are named {name}; give each a name of its own.",
                count=counts[chosen.name],
                name=chosen.name,
            )


def name_of_the_training_file(spec: RunSpec) -> Iterator[Refusal]:
    for number, chosen in enumerate(spec.evaluation.sets):
        if chosen.name == "train":
            yield refuse(
                "name_taken",
                f"evaluation.sets.{number}.name",
                "The name train is taken by the training data; give the evaluation set another name.",
            )


def more_than_sampled(spec: RunSpec) -> Iterator[Refusal]:
    for number, chosen in enumerate(spec.evaluation.sets):
        if too_large := [k for k in chosen.k if k > chosen.n]:
            yield refuse(
                "pass_at_k_over_n",
                f"evaluation.sets.{number}.k",
                "pass@{k} needs at least {k} samples per problem and {name} takes {n}; raise n or lower k.",
                k=max(too_large),
                n=chosen.n,
                name=chosen.name,
            )


CHECKS: tuple[RunCheck, ...] = (
    no_training_data,
    more_training_data,
    difficulty_crossed,
    no_evaluation_data,
    same_name_twice,
    name_of_the_training_file,
    more_than_sampled,
)

"""Choices that rarely end well, or leave nothing to judge a run by: the form says so, and they stop nothing."""

from collections.abc import Iterator

from vantage_trainer.data_files import imitated_file, training_files
from vantage_trainer.refusal import Refusal, RunCheck, refuse
from vantage_trainer.spec import RunSpec


def untrained_without_warm_start(spec: RunSpec) -> Iterator[Refusal]:
    if spec.model.source == "tiny" and spec.warm_start is None:
        yield refuse(
            "untrained_without_warm_start",
            "warm_start",
            "The model {name} begins with random weights: without a warm start hardly an answer is right, "
            "and there is nothing to learn from.",
            name=spec.model.name,
        )


def nothing_evaluated(spec: RunSpec) -> Iterator[Refusal]:
    if not spec.evaluation.sets:
        yield refuse(
            "nothing_evaluated",
            "evaluation.sets",
            "Without an evaluation set the run has no pass@1 on held-out problems, and no checkpoint is the best.",
        )


def evaluated_on_training_data(spec: RunSpec) -> Iterator[Refusal]:
    trained = {**training_files(spec), **imitated_file(spec)}.values()
    for number, chosen in enumerate(spec.evaluation.sets):
        if chosen.dataset.strip() and chosen.dataset in trained:
            yield refuse(
                "evaluated_on_training_data",
                f"evaluation.sets.{number}.dataset",
                "The evaluation set {name} holds the problems the run trains on, so it cannot tell skill from memory; "
                "usually a held-out dataset is wanted.",
                name=chosen.name,
            )


CHECKS: tuple[RunCheck, ...] = (untrained_without_warm_start, nothing_evaluated, evaluated_on_training_data)

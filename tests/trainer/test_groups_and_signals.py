import pytest
from vantage_trainer.data import Problem
from vantage_trainer.generation import Completion
from vantage_trainer.report import mixed_groups, signals
from vantage_trainer.rewards.scoring import Score
from vantage_trainer.rollout import Response

PROBLEM = Problem("a", "1+1=", [1], "2")


def group(number: int, correct: list[bool | None], finish: str = "stop") -> list[Response]:
    """Make one group; None is a response that could not be scored."""
    return [
        Response(
            PROBLEM,
            number,
            index,
            Completion([5, 2], [-0.1, -0.2], finish, 1),
            "2",
            Score(None if right is None else float(right), {}, right),
        )
        for index, right in enumerate(correct)
    ]


def test_each_group_is_classed_once_by_the_first_that_fits() -> None:
    responses = [
        *group(0, [True, False]),
        *group(1, [True, True]),
        *group(2, [False, False]),
        *group(3, [True, False], finish="length"),
        *group(4, [True, None], finish="length"),
    ]
    shares = signals(responses)
    assert shares == {
        "signal/errored": 0.2,
        "signal/stale": 0.0,
        "signal/truncated": 0.2,
        "signal/all_correct": 0.2,
        "signal/all_wrong": 0.2,
        "signal/mixed": 0.2,
    }
    assert sum(shares.values()) == pytest.approx(1.0)


def test_groups_that_teach_hold_right_and_wrong_answers_among_those_scored() -> None:
    responses = [*group(0, [True, None]), *group(1, [True, False, None]), *group(2, [False, False])]
    assert mixed_groups(responses) == [1]

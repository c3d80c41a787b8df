"""How many samples an evaluation may take of one problem."""

import pytest
from pydantic import ValidationError
from vantage_trainer.spec import EvaluationSet


def test_more_samples_per_problem_than_memory_holds_are_refused() -> None:
    assert EvaluationSet(n=4096).n == 4096
    with pytest.raises(ValidationError, match="less than or equal to 4096"):
        EvaluationSet(n=1_000_000_000)

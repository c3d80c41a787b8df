"""What a legend calls a metric."""

import pytest
from vantage.runs.charts import title_of


@pytest.mark.parametrize(
    ("key", "title"),
    [("warm_start/loss", "Warm-start loss"), ("eval/heldout/pass@4", "pass@4 heldout"), ("no/such", "no/such")],
)
def test_a_metric_with_and_without_a_set_has_a_title(key: str, title: str) -> None:
    assert title_of(key) == title

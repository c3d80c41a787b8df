"""Charts read buckets: no spike is lost, nothing that isn't finite reaches JSON, repeated steps count once."""

import json
import math
from collections.abc import Callable

import pytest
from django.utils import timezone
from vantage.runs.models import Attempt, Event, MetricKey, MetricRow, Run
from vantage.runs.prepare import NOTHING, resumed
from vantage.runs.series import series, series_of


@pytest.fixture
def run(make_run: Callable[..., Run]) -> Run:
    made = make_run()
    begin(made, 1)
    return made


def begin(run: Run, number: int, **fields: object) -> Attempt:
    return run.attempts.create(number=number, lease_until=timezone.now(), **fields)


def report(run: Run, values: list[tuple[int, float]], *, attempt: int = 1, key: str = "reward/mean") -> None:
    found, _ = MetricKey.objects.get_or_create(name=key)
    first = MetricRow.objects.filter(run=run, attempt=attempt, key=found).count()
    MetricRow.objects.bulk_create(
        MetricRow(run=run, key=found, attempt=attempt, seq=seq, step=step, time=1000.0 + step, value=value)
        for seq, (step, value) in enumerate(values, first + 1)
    )


def test_two_opposite_spikes_five_steps_apart_both_survive(run: Run) -> None:
    report(run, [(step, {5000: 9.0, 5005: -9.0}.get(step, 0.5)) for step in range(1, 10_001)])
    found = series(run, "reward/mean", points=100)
    assert max(found.max) == 9.0 and min(found.min) == -9.0
    assert sum(found.count) == 10_000 and len(found.x) <= 101


def test_bucket_edges_stay_where_they_are_when_steps_are_added(run: Run) -> None:
    report(run, [(step, float(step)) for step in range(1, 3001)])
    before = series(run, "reward/mean", points=400)
    report(run, [(step, float(step)) for step in range(3001, 3101)])
    after = series(run, "reward/mean", points=400)
    assert before.width == after.width == 8
    assert after.x[: len(before.x) - 1] == before.x[:-1]


def test_what_is_not_finite_is_counted_left_out_and_sent_as_null(run: Run) -> None:
    report(run, [(1, 1.0), (2, math.nan), (3, math.inf), (4, -math.inf), (5, 1e308), (6, -1e308)])
    found = series(run, "reward/mean")
    assert found.last == [1.0, None, None, None, 1e308, -1e308] and sum(found.nonfinite) == 3
    json.loads(json.dumps(found.as_json(), allow_nan=False))


def test_one_step_is_one_bucket(run: Run) -> None:
    report(run, [(7, 0.25)])
    found = series(run, "reward/mean")
    assert (found.x, found.min, found.max, found.last, found.count) == ([7], [0.25], [0.25], [0.25], [1])


def test_a_metric_never_reported_is_an_empty_series(run: Run) -> None:
    assert series(run, "reward/mean").x == [] and series(run, "reward/mean", x="tokens").x == []


def test_of_several_values_at_one_step_the_highest_seq_is_shown_and_the_rest_counted(run: Run) -> None:
    report(run, [(1, 1.0), (2, 2.0), (1, 10.0)])
    found = series(run, "reward/mean")
    assert found.last == [10.0, 2.0] and found.repeated == 1


def test_steps_repeated_after_a_resume_are_current_exactly_once(run: Run) -> None:
    report(run, [(step, 1.0) for step in range(1, 26)])
    run.attempts.update(superseded_after=20)
    begin(run, 2, resumed_from=20)
    report(run, [(step, 2.0) for step in range(21, 31)], attempt=2)
    found = series(run, "reward/mean")
    assert found.x == list(range(1, 31)) and found.last == [1.0] * 20 + [2.0] * 10 and found.repeated == 0


def test_a_run_that_began_anew_shows_none_of_its_first_attempt(run: Run) -> None:
    for key in ("reward/mean", "warm_start/loss"):
        report(run, [(1, 1.0)], key=key)
    run.attempts.update(superseded_after=NOTHING)
    begin(run, 2)
    report(run, [(1, 2.0)], attempt=2, key="warm_start/loss")
    assert series(run, "reward/mean").x == [] and series(run, "warm_start/loss").last == [2.0]


def test_warm_start_steps_before_its_checkpoint_stay_current_and_those_after_it_are_repeated(run: Run) -> None:
    report(run, [(step, 1.0) for step in range(1, 51)], key="warm_start/loss")
    begin(run, 2)
    resumed(run.pk, 2, 40, in_warm_start=True)
    report(run, [(step, 2.0) for step in range(41, 61)], attempt=2, key="warm_start/loss")
    found = series(run, "warm_start/loss")
    assert found.x == list(range(1, 61)) and found.last == [1.0] * 40 + [2.0] * 20 and found.repeated == 0


def test_the_warm_start_stays_current_when_training_resumes_after_it(run: Run) -> None:
    report(run, [(step, 1.0) for step in range(1, 401)], key="warm_start/loss")
    run.attempts.update(superseded_after=0)
    begin(run, 2, resumed_from=0)
    assert sum(series(run, "warm_start/loss").count) == 400


def test_elapsed_time_leaves_out_the_gap_between_attempts(run: Run) -> None:
    for attempt, start in ((1, 100.0), (2, 5000.0)):
        Event.objects.create(run=run, attempt=attempt, seq=1, step=0, time=start, kind="phase")
    Event.objects.create(run=run, attempt=1, seq=2, step=2, time=120.0, kind="checkpoint")
    run.attempts.update(superseded_after=2)
    begin(run, 2, resumed_from=2)
    key = MetricKey.objects.create(name="reward/mean")
    for attempt, seq, step, time in ((1, 1, 1, 110.0), (1, 2, 2, 119.0), (1, 3, 3, 130.0), (2, 1, 3, 5010.0)):
        MetricRow.objects.create(run=run, key=key, attempt=attempt, seq=seq, step=step, time=time, value=step)
    found = series(run, "reward/mean", x="time")
    assert found.x == [10.0, 19.0, 30.0] and found.last == [1.0, 2.0, 3.0]


def test_tokens_are_an_axis_and_step_0_lies_at_no_tokens(run: Run) -> None:
    report(run, [(0, 0.5), (10, 0.8)], key="eval/heldout/pass@1")
    report(run, [(step, 100.0 * step) for step in range(1, 11)], key="tokens/generated")
    found = series(run, "eval/heldout/pass@1", x="tokens")
    assert found.x == [0.0, 1000.0] and found.last == [0.5, 0.8]


def test_a_zoom_reads_only_what_lies_within(run: Run) -> None:
    report(run, [(step, float(step)) for step in range(1, 1001)])
    assert series(run, "reward/mean", low=100, high=110).x == list(range(100, 111))
    Event.objects.create(run=run, attempt=1, seq=1, step=0, time=1000.0, kind="phase")
    assert series(run, "reward/mean", x="time", low=100.0, high=110.0).x == list(range(100, 111))


def test_many_runs_are_cut_at_the_same_edges(make_run: Callable[..., Run]) -> None:
    runs = [make_run(), make_run(), make_run()]
    for run, length in zip(runs, (1000, 30, 0), strict=True):
        begin(run, 1)
        report(run, [(step, 1.0) for step in range(1, length + 1)])
    found = series_of(runs, "reward/mean", points=100)
    assert {found[runs[0].pk].width, found[runs[1].pk].width} == {16} and found[runs[2].pk].x == []

"""What two attempts computed twice is compared to the last bit, and the run's pages say what came out."""

import math
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from vantage.runs.exactness import expectation, verdict
from vantage.runs.models import MetricKey, MetricRow, Run
from vantage.runs.repeats import Answers, Place, Repeat, compare
from vantage.runs.resumes import Resumes, resumes_of
from vantage.runs.states import Outcome
from vantage.teams.models import User
from vantage_trainer.spec import RunSpec

ClientOf = Callable[[User], Client]
BEFORE: dict[Place, float] = {("rl", step, "reward/mean"): step / 3 for step in (41, 42, 43, 44)}


def test_equal_bits_agree_and_every_nan_is_the_same() -> None:
    nan = {("rl", 41, "policy/loss"): float("nan")}
    found = compare([1], BEFORE | nan, BEFORE | nan, [Answers(41, 8, 8, 8, 0)])
    assert found.is_identical
    assert (found.steps, found.num_metrics, found.num_values, found.num_completions) == ([41, 44], 2, 5, 8)


@pytest.mark.parametrize(("one", "other"), [(0.1, math.nextafter(0.1, 1)), (0.0, -0.0), (1.0, math.nan)])
def test_the_last_bit_counts_and_both_values_are_told(one: float, other: float) -> None:
    found = compare([1], {("rl", 7, "policy/loss"): one}, {("rl", 7, "policy/loss"): other})
    [difference] = found.differences
    assert not found.is_identical
    assert (difference.step, difference.what) == (7, "policy/loss")
    assert (difference.before, difference.after) == (repr(one), repr(other))


def test_what_only_one_side_told_differs_unless_the_other_had_not_come_so_far() -> None:
    extra: dict[Place, float] = {("rl", 42, "eval/heldout/mean"): 0.5, ("rl", 44, "eval/heldout/mean"): 0.6}
    found = compare([1], BEFORE | extra, BEFORE)
    [difference] = found.differences
    assert (difference.step, difference.before, difference.after) == (42, "0.5", None)
    further: dict[Place, float] = {("rl", 45, "reward/mean"): 1.0}
    assert compare([1], BEFORE, BEFORE | further).is_identical


def test_completions_that_are_missing_or_differ_are_counted() -> None:
    found = compare([1], BEFORE, BEFORE, [Answers(41, 8, 6, 6, 0), Answers(42, 8, 8, 8, 3), Answers(44, 8, 2, 2, 0)])
    assert found.num_differences == 1 + 3
    assert found.differences[0].what == "number of completions"


def test_many_differences_are_counted_and_the_first_are_kept() -> None:
    before: dict[Place, float] = {("rl", step, "policy/loss"): 1.0 for step in range(1, 1001)}
    found = compare([1], before, dict.fromkeys(before, 2.0))
    assert found.num_differences == 1000 and len(found.differences) == 50


def test_sentences_name_the_steps_the_attempts_and_what_was_compared() -> None:
    same = Repeat(attempts=[1], steps=[41, 44], num_metrics=31, num_values=124, num_completions=1024)
    assert verdict(2, "from step 40", same).sentence == (
        "Identical to uninterrupted: steps 41-44 were computed twice, by attempts 1 and 2, "
        "and agree in all 31 metrics and 1,024 completions."
    )
    other = same.model_copy(update={"steps": [7, 7], "warm_steps": [2, 9], "attempts": [1, 2], "num_differences": 1})
    assert verdict(3, "from step 40", other).sentence == (
        "Not identical: warm-start steps 2-9 and step 7 were computed twice, by attempts 1, 2 and 3; "
        "of 124 values of 31 metrics and 1,024 completions, 1 differs."
    )
    assert verdict(2, "from step 40", Repeat(attempts=[])).sentence == (
        "Not checked: attempt 2 went on from step 40, and no step was computed twice."
    )


CPU = {"device": "cpu", "ranks": 1, "threads": 2, "torch": "2"}


@pytest.mark.parametrize(
    ("change", "second", "told"),
    [
        ({}, CPU, "Expected to be exact"),
        ({"resources": {"staleness": 1}}, CPU, "asynchronous"),
        ({"model": {"dtype": "bfloat16"}}, CPU, "bfloat16"),
        ({}, CPU | {"device": "NVIDIA"}, "On a GPU kernels may add in another order"),
        ({}, CPU | {"threads": 4}, "Not the same number of threads in every attempt (attempt 1 2, attempt 2 4)"),
        ({}, CPU | {"torch": "3"}, "Not the same version of torch"),
    ],
)
def test_what_may_be_expected_depends_on_the_spec_and_on_the_machines(change: dict, second: dict, told: str) -> None:
    assert told in expectation(RunSpec.model_validate(change), {1: CPU, 2: second})


def report(run: Run, attempt: int, steps: range, *, offset: float = 0.0, text: str = "same", seq: int = 0) -> None:
    """Write what an attempt would have reported of these steps."""
    names = ("reward/mean", "policy/loss", "time/step")
    keys = {name: MetricKey.objects.get_or_create(name=name)[0] for name in names}
    for step in steps:
        seq += 1
        row = {"run": run, "attempt": attempt, "seq": seq, "step": step, "time": 1e9}
        MetricRow.objects.create(**row, key=keys["reward/mean"], value=step / 3)
        MetricRow.objects.create(**row, key=keys["policy/loss"], value=step / 7 + offset)
        MetricRow.objects.create(**row, key=keys["time/step"], value=attempt)
        for index in range(2):
            run.samples.create(
                attempt=attempt, seq=2 * seq + index, step=step, time=1e9, prompt_id="1", group=0, index=index,
                prompt="p", text=text, num_tokens=1, finish="stop", version=attempt, digest="d",
            )  # fmt: skip
    run.attempts.filter(number=attempt).update(step=max(steps))


@pytest.fixture
def resumed(make_run: Callable[..., Run]) -> Run:
    """A run whose first attempt was killed after step 44, past the checkpoint of step 40."""
    run = make_run(attempt=2, status="running")
    for number, outcome in ((1, Outcome.LOST), (2, Outcome.LIVE)):
        run.attempts.create(number=number, lease_until=timezone.now(), outcome=outcome)
    data = {"from_step": 40, "stage": "rl", "checkpoint": "checkpoints/step-000040"}
    run.events.create(attempt=2, seq=1, step=40, time=1e9, kind="resumed", data=data)
    report(run, 1, range(38, 45))
    return run


def page(client: Client, run: Run, name: str = "run_events") -> str:
    return client.get(reverse(name, args=[run.pk])).content.decode()


def test_a_run_that_repeats_itself_to_the_bit_says_so_on_its_pages(
    resumed: Run, people: object, client_of: ClientOf
) -> None:
    report(resumed, 2, range(41, 47))
    viewer = client_of(people.viewer)
    told = "steps 41-44 were computed twice, by attempts 1 and 2, and agree in all 2 metrics and 8 completions."
    assert f"Identical to uninterrupted: {told}" in page(viewer, resumed)
    assert "Identical to uninterrupted</a>" in page(viewer, resumed, "run")
    assert Repeat.model_validate(resumed.attempts.get(number=2).repeat).is_identical


def test_what_differs_is_listed_with_both_values(resumed: Run, people: object, client_of: ClientOf) -> None:
    report(resumed, 2, range(41, 47), offset=1e-16, text="<b>other\0</b>")
    shown = page(client_of(people.viewer), resumed)
    [one] = resumes_of(resumed).verdicts
    assert (
        one.is_bad
        and one.repeat
        and one.repeat.num_differences == 8 + sum(step / 7 != step / 7 + 1e-16 for step in range(41, 45))
    )
    assert "text of answer 1 in group 0" in shown
    assert "&lt;b&gt;other␀&lt;/b&gt;" in shown and "<b>other" not in shown


def test_a_comparison_is_settled_only_when_all_that_was_lost_has_come_again(resumed: Run) -> None:
    report(resumed, 2, range(41, 43))
    [one] = resumes_of(resumed).verdicts
    assert one.title == "compared soon" and "went on from step 40" in one.sentence
    assert resumed.attempts.get(number=2).repeat is None
    report(resumed, 2, range(43, 46), seq=10, offset=1.0)
    [one] = resumes_of(resumed).verdicts
    assert one.repeat and one.repeat.steps == [41, 44] and one.repeat.num_differences == 2
    MetricRow.objects.all().delete()
    assert resumes_of(resumed).verdicts == [one]


def test_an_evaluation_that_was_interrupted_and_made_up_for_is_no_difference(resumed: Run) -> None:
    report(resumed, 2, range(41, 47))
    key = MetricKey.objects.create(name="eval/heldout/mean")
    MetricRow.objects.create(run=resumed, attempt=2, seq=99, step=40, time=1e9, key=key, value=0.5)
    [one] = resumes_of(resumed).verdicts
    assert one.repeat and one.repeat.is_identical and one.repeat.steps == [41, 44]


def test_a_clean_stop_and_resume_is_not_called_checked(resumed: Run, people: object, client_of: ClientOf) -> None:
    MetricRow.objects.filter(step__gt=40).delete()
    resumed.samples.filter(step__gt=40).delete()
    resumed.attempts.filter(number=1).update(step=40)
    report(resumed, 2, range(41, 44))
    shown = page(client_of(people.viewer), resumed)
    assert "Not checked: attempt 2 went on from step 40, and no step was computed twice." in shown
    assert "Expected to be exact: it is synchronous and works in float32 on a CPU." in shown


def test_a_run_that_was_never_interrupted_is_not_spoken_of(make_run: Callable[..., Run]) -> None:
    assert resumes_of(make_run(attempt=1)) == Resumes()


def test_a_warm_start_that_was_repeated_is_compared_in_steps_of_its_own(make_run: Callable[..., Run]) -> None:
    run = make_run(attempt=2)
    for number in (1, 2):
        run.attempts.create(number=number, lease_until=timezone.now(), outcome=Outcome.LOST)
    data = {"from_step": 10, "stage": "warm_start", "checkpoint": "checkpoints/start-000010"}
    run.events.create(attempt=2, seq=1, step=10, time=1e9, kind="resumed", data=data)
    key = MetricKey.objects.create(name="warm_start/loss")
    for attempt, steps in ((1, range(1, 15)), (2, range(11, 21))):
        for step in steps:
            MetricRow.objects.create(run=run, attempt=attempt, seq=step, step=step, time=1e9, key=key, value=1 / step)
    [one] = resumes_of(run).verdicts
    assert "warm-start steps 11-14 were computed twice" in one.sentence and not one.is_bad

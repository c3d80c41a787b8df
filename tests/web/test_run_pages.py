"""A run's pages: what they show, to whom, and that nothing from a model is more than text."""

import json
import math
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from vantage.datasets.models import Dataset, DatasetVersion, Row
from vantage.runs.charts import charts_of
from vantage.runs.configuration import differences
from vantage.runs.models import Attempt, Event, LogTail, MetricKey, MetricRow, Run, Sample
from vantage.runs.spark import spark
from vantage.teams.models import User
from vantage_trainer.presets import PRESETS
from vantage_trainer.recipes import demo_spec
from vantage_trainer.spec import EvaluationSet, RewardPart, RunSpec

ClientOf = Callable[[User], Client]
PAGES = (
    "run",
    "run_head",
    "run_charts",
    "run_samples",
    "run_events",
    "run_log",
    "run_checkpoints",
    "run_configuration",
)
REWARDS = (0.1, math.nan, math.inf, -math.inf, 0.4, 1e308, -1e308)


@pytest.fixture
def run(make_run: Callable[..., Run]) -> Run:
    """A run at work that has reported values of every kind and texts of any content."""
    spec = RunSpec(algorithm=PRESETS["grpo"].algorithm.model_copy(update={"preset": "grpo"}))
    spec.evaluation.sets = [EvaluationSet(dataset="sums@1")]
    made = make_run(spec=spec.model_dump(mode="json"), status="running", attempt=1, started=timezone.now())
    attempt = Attempt.objects.create(run=made, number=1, lease_until=timezone.now(), step=7)
    LogTail.objects.create(attempt=attempt, text="<b>loud</b>\x00 line", size=20)
    report(made, "reward/mean", REWARDS)
    report(made, "<img src=x onerror=alert(1)>", (1.0, 2.0))
    Event.objects.create(run=made, attempt=1, seq=1, step=1, time=1, kind="warning", data={"sentence": "<i>odd</i>"})
    for index, text in enumerate(("<script>alert(1)</script>", "NUL \x00 and \ud800", "", "x" * 100_000)):
        add_sample(made, index, text)
    return made


def report(run: Run, name: str, values: tuple[float, ...]) -> None:
    key = MetricKey.objects.get_or_create(name=name)[0]
    MetricRow.objects.bulk_create(
        MetricRow(run=run, attempt=1, seq=n, key=key, step=n, time=n, value=value) for n, value in enumerate(values, 1)
    )


def add_sample(run: Run, index: int, text: str) -> None:
    Sample.objects.create(
        run=run,
        attempt=1,
        seq=index + 1,
        step=1,
        time=1,
        prompt_id="p",
        group=0,
        index=index,
        prompt="What is <b>1 + 1</b>?",
        text=text,
        num_tokens=len(text),
        reward=math.nan if index == 2 else 1.0,
        finish="stop",
        version=0,
    )


@pytest.mark.parametrize("page", PAGES)
def test_an_outsider_finds_no_page_of_a_run(page: str, run: Run, people: object, client_of: ClientOf) -> None:
    address = reverse(page, args=[run.pk])
    assert client_of(people.viewer).get(address).status_code == 200
    assert client_of(people.outsider).get(address).status_code == 404


@pytest.mark.parametrize("address", ["run_stop", "run_edit"])
def test_an_outsider_changes_no_run_and_a_viewer_is_told_why_not(
    address: str, run: Run, people: object, client_of: ClientOf
) -> None:
    place = reverse(address, args=[run.pk])
    assert client_of(people.outsider).post(place, {"name": "mine"}).status_code == 404
    refused = client_of(people.viewer).post(place, {"name": "mine"})
    assert refused.status_code == 403
    assert "Your role in Lab is viewer" in refused.content.decode()
    run.refresh_from_db()
    assert (run.status, run.name) == ("running", "run 1")


def test_a_member_stops_a_run_once(run: Run, people: object, client_of: ClientOf) -> None:
    member = client_of(people.member)
    assert "Asked to stop" in member.post(reverse("run_stop", args=[run.pk]), follow=True).content.decode()
    run.refresh_from_db()
    assert (run.status, run.stopped_by) == ("stopping", people.member)
    assert "It had ended already." in member.post(reverse("run_stop", args=[run.pk]), follow=True).content.decode()


def test_a_viewer_is_offered_nothing_that_would_be_refused(run: Run, people: object, client_of: ClientOf) -> None:
    page = client_of(people.viewer).get(reverse("run", args=[run.pk])).content.decode()
    assert "Stop this run?" not in page
    assert reverse("run_new") not in page


def test_values_that_are_not_finite_leave_json_standard_and_are_counted(
    run: Run, people: object, client_of: ClientOf
) -> None:
    answer = client_of(people.viewer).get(reverse("run_charts", args=[run.pk]), {"chart": "reward"})
    figure = json.loads(answer.content, parse_constant=pytest.fail)["figures"]["reward"]
    line = next(trace for trace in figure["data"] if trace["meta"]["role"] == "line")
    marks = next(trace for trace in figure["data"] if trace["meta"]["role"] == "nonfinite")
    assert line["y"] == [0.1, None, None, None, 0.4, 1e308, -1e308]
    assert marks["x"] == [2, 3, 4]


def test_only_what_is_new_is_sent_to_a_chart_that_is_drawn(run: Run, people: object, client_of: ClientOf) -> None:
    answer = client_of(people.viewer).get(reverse("run_charts", args=[run.pk]), {"chart": "reward@5"}).json()
    figure = answer["figures"]["reward"]
    assert figure["since"] == 5
    assert next(trace for trace in figure["data"] if trace["meta"]["role"] == "line")["x"] == [5, 6, 7]


def test_a_metrics_name_is_escaped_where_plotly_would_read_markup(
    run: Run, people: object, client_of: ClientOf
) -> None:
    answer = client_of(people.viewer).get(reverse("run_charts", args=[run.pk]), {"chart": "other-0"}).json()
    assert answer["figures"]["other-0"]["data"][0]["name"] == "&lt;img src=x onerror=alert(1)&gt;"
    page = client_of(people.viewer).get(reverse("run", args=[run.pk])).content.decode()
    assert "<img src=x" not in page


def test_completions_are_shown_as_text_with_signs_for_what_cannot_be_shown(
    run: Run, people: object, client_of: ClientOf
) -> None:
    page = client_of(people.viewer).get(reverse("run_samples", args=[run.pk])).content.decode()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script>alert(1)" not in page
    assert "NUL \u2400 and \ufffd" in page
    assert "The answer is empty." in page
    assert "All 100,000 characters" in page
    assert "x" * 5000 not in page


def test_a_whole_completion_is_plain_text(run: Run, people: object, client_of: ClientOf) -> None:
    sample = Sample.objects.get(run=run, index=0)
    answer = client_of(people.viewer).get(reverse("run_sample_text", args=[run.pk, sample.pk]))
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.content == b"<script>alert(1)</script>"
    assert client_of(people.outsider).get(reverse("run_sample_text", args=[run.pk, sample.pk])).status_code == 404


def test_log_and_events_are_text(run: Run, people: object, client_of: ClientOf) -> None:
    reader = client_of(people.viewer)
    assert "&lt;b&gt;loud&lt;/b&gt;\u2400" in reader.get(reverse("run_log", args=[run.pk])).content.decode()
    assert "&lt;i&gt;odd&lt;/i&gt;" in reader.get(reverse("run_events", args=[run.pk])).content.decode()


def test_a_chart_as_csv_holds_every_point_and_no_formula(run: Run, people: object, client_of: ClientOf) -> None:
    report(run, "=1+1", (3.0,))
    reader = client_of(people.viewer)
    rows = reader.get(reverse("run_chart_csv", args=[run.pk, "reward"])).content.decode().splitlines()
    assert rows[:3] == ["step,reward/mean", "1.0,0.1", "2.0,"]
    assert reader.get(reverse("run_chart_csv", args=[run.pk, "nothing"])).status_code == 404
    odd = [reader.get(reverse("run_chart_csv", args=[run.pk, f"other-{n}"])).content.decode() for n in (0, 1)]
    assert any("'=1+1" in text for text in odd)


def test_what_cannot_move_says_that_it_is_zero_by_construction(run: Run, people: object, client_of: ClientOf) -> None:
    page = client_of(people.viewer).get(reverse("run", args=[run.pk])).content.decode()
    assert "0 by construction: one on-policy step per batch" in page


def test_name_tags_and_notes_can_be_changed(run: Run, people: object, client_of: ClientOf) -> None:
    sent = {"name": "  a\nbetter\x00 name ", "tags": "one, two,, one", "notes": "why"}
    client_of(people.member).post(reverse("run_edit", args=[run.pk]), sent)
    run.refresh_from_db()
    assert (run.name, run.tags, run.notes) == ("a better\u2400 name", ["one", "two"], "why")


def test_the_spec_can_be_read_as_the_json_the_trainer_was_given(run: Run, people: object, client_of: ClientOf) -> None:
    answer = client_of(people.viewer).get(reverse("run_configuration", args=[run.pk]), {"format": "json"})
    assert RunSpec.model_validate_json(answer.content) == RunSpec.model_validate(run.spec)


def test_a_filter_of_samples_leaves_the_counts_of_the_whole_group(
    run: Run, people: object, client_of: ClientOf
) -> None:
    Sample.objects.filter(run=run).update(correct=True)
    Sample.objects.filter(run=run, index=0).update(correct=False, reward=0.0)
    page = client_of(people.viewer).get(reverse("run_samples", args=[run.pk]), {"only": "wrong"}).content.decode()
    assert "3 of 4 correct, mean reward 0.6667; 1 shown" in page
    assert page.count('class="answer"') == 1


def test_samples_name_their_problem_and_the_answer_it_expects(run: Run, people: object, client_of: ClientOf) -> None:
    dataset = Dataset.objects.create(team=run.team, name="sums")
    version = DatasetVersion.objects.create(dataset=dataset, number=1, digest="d", num_rows=1)
    Row.objects.create(version=version, number=1586, prompt="1 + 1", answer="<b>2</b>")
    Run.objects.filter(pk=run.pk).update(datasets={"train": version.pk})
    Sample.objects.filter(run=run).update(prompt_id="1586")
    page = client_of(people.viewer).get(reverse("run_samples", args=[run.pk])).content.decode()
    assert "problem 1586" in page
    assert "<code>&lt;b&gt;2&lt;/b&gt;</code>" in page
    Run.objects.filter(pk=run.pk).update(datasets={"train+2": version.pk})
    Sample.objects.filter(run=run).update(prompt_id="2:1586")
    assert (
        "&lt;b&gt;2&lt;/b&gt;" in client_of(people.viewer).get(reverse("run_samples", args=[run.pk])).content.decode()
    )


def test_reward_parts_have_their_chart_before_they_are_reported_unless_they_repeat_the_reward() -> None:
    def parts(*chosen: RewardPart, reported: frozenset[str] = frozenset()) -> list[str]:
        spec = RunSpec()
        spec.reward.parts = list(chosen)
        return [key for shown in charts_of(spec, set(reported)) for key in shown.keys if key.startswith("reward/part/")]

    both = RewardPart(kind="exact"), RewardPart(kind="numeric", weight=0.5)
    assert parts(*both) == ["reward/part/exact", "reward/part/numeric"]
    assert parts(RewardPart(kind="exact"), reported=frozenset({"reward/part/exact"})) == []
    assert parts(RewardPart(kind="exact", weight=2)) == ["reward/part/exact"]


def test_what_a_run_does_now_ends_when_something_else_begins(run: Run, people: object, client_of: ClientOf) -> None:
    def tell(seq: int, kind: str, **data: object) -> str:
        Event.objects.create(run=run, attempt=1, seq=seq, step=7, time=100 + seq, kind=kind, data=data)
        page = client_of(people.viewer).get(reverse("run_head", args=[run.pk])).content.decode()
        return page.partition("<dt>Now</dt><dd>")[2].partition("<")[0].strip()

    assert tell(2, "phase", name="loading", progress=None) == "Loading the model"
    assert tell(3, "stage", name="warm_start", steps=700) == "Step 8"
    assert tell(4, "phase", name="checkpointing", progress=None) == "Writing a checkpoint"
    assert tell(5, "checkpoint", step=0) == "Step 8"
    assert tell(6, "waiting", what="the generator's engine", since=1.0) == "Waits for the generator&#x27;s engine"
    assert tell(7, "phase", name="syncing", progress=None) == "Moving weights"
    assert tell(8, "sync", version=1) == "Step 8"
    assert tell(9, "phase", name="updating", progress=None) == "Updating"
    MetricRow.objects.filter(run=run).update(time=200)
    assert tell(10, "phase", name="generating", progress=None) == "Step 8"


def test_a_run_at_rest_is_deleted_from_its_page_and_brought_back(run: Run, people: object, client_of: ClientOf) -> None:
    member, place, button = client_of(people.member), reverse("run", args=[run.pk]), 'value="delete">'
    assert button not in member.get(place).content.decode()
    Run.objects.filter(pk=run.pk).update(status="failed")
    assert button in member.get(place).content.decode()
    assert button not in client_of(people.viewer).get(place).content.decode()
    gone = member.post(reverse("runs_change"), {"act": "delete", "run": run.pk}, follow=True).content.decode()
    assert "1 run deleted." in gone and "Undo" in gone
    assert member.get(place).status_code == 404
    member.post(reverse("runs_restore"), {"run": run.pk})
    assert member.get(place).status_code == 200


def test_the_configuration_reads_in_the_words_of_the_form_with_the_key_beside_them(
    run: Run, people: object, client_of: ClientOf
) -> None:
    page = client_of(people.viewer).get(reverse("run_configuration", args=[run.pk])).content.decode()
    for title, key in (
        ("Baseline", "baseline.kind"),
        ("Trust region › Lower ε", "trust_region.low"),
        ("Part 1 › Kind", "parts.1.kind"),
        ("Evaluation set 1 › Samples per problem", "sets.1.n"),
        ("Tokens per micro-batch", "tokens_per_microbatch"),
    ):
        assert f'<dt>{title} <code class="key">{key}</code></dt>' in page
    assert "Group mean" in page and "16,384" in page and "16384 " not in page.partition("As JSON")[0]


def test_differences_carry_the_words_of_whichever_spec_has_the_value() -> None:
    before, after = RunSpec(), RunSpec(algorithm=PRESETS["grpo"].algorithm)
    after.budget.steps = 4096
    found = {
        change.key: change.title
        for change in differences(before.model_dump(mode="json"), after.model_dump(mode="json"))
    }
    assert found["budget.steps"] == "Budget › Steps"
    assert found["algorithm.trust_region.low"] == "Algorithm › Trust region › Lower ε"
    there = differences(after.model_dump(mode="json"), before.model_dump(mode="json"))
    assert found == {change.key: change.title for change in there}


def test_a_run_that_failed_before_it_told_anything_says_why_among_its_events(
    run: Run, people: object, client_of: ClientOf
) -> None:
    Event.objects.filter(run=run).delete()
    Run.objects.filter(pk=run.pk).update(status="failed", sentence="The model <b>folder</b> is gone.")
    page = client_of(people.viewer).get(reverse("run_events", args=[run.pk])).content.decode()
    assert "told of anything: The model &lt;b&gt;folder&lt;/b&gt; is gone." in page


def test_small_lines_share_one_scale() -> None:
    low, high = spark([(0, 0.0), (1, 0.25), (2, math.nan)]), spark([(0, 0.5), (5, 1.0)])
    assert (low and low.points, high and high.points) == ("0.0,20.0 72.0,15.0", "0.0,10.0 72.0,0.0")
    assert spark([(0, 0.5), (1, math.nan)]) is None


def test_an_evaluation_before_the_warm_start_has_a_chart_of_its_own() -> None:
    spec = demo_spec()
    spec.evaluation.before_warm_start = True
    shown = {one.chart.slug: one.keys for one in charts_of(spec, set())}
    assert "warm_start/heldout/pass@1" in shown["before"] and shown["warm-start"] == ("warm_start/loss",)
    assert "before" not in {one.chart.slug for one in charts_of(demo_spec(), set())}

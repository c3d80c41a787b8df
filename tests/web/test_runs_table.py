"""The table of runs: whose, in which order, and what can be done to many."""

import math
from collections.abc import Callable

from django.test import Client
from django.urls import reverse
from django.utils import timezone
from vantage.nodes.models import Node
from vantage.runs.models import Attempt, MetricKey, MetricRow, Run
from vantage.teams.models import AuditEntry, User

ClientOf = Callable[[User], Client]
MakeRun = Callable[..., Run]


def names(answer: object) -> list[str]:
    return [line.run.name for line in answer.context["lines"]]


def with_reward(run: Run, *values: float) -> Run:
    Attempt.objects.create(run=run, number=1, lease_until=run.created, step=len(values))
    Run.objects.filter(pk=run.pk).update(attempt=1)
    key = MetricKey.objects.get_or_create(name="reward/mean")[0]
    MetricRow.objects.bulk_create(
        MetricRow(run=run, attempt=1, seq=n, key=key, step=n, time=n, value=value) for n, value in enumerate(values, 1)
    )
    return run


def test_runs_of_another_team_are_not_in_the_table(people: object, make_run: MakeRun, client_of: ClientOf) -> None:
    make_run(name="ours")
    make_run(name="theirs", team=people.other_team)
    assert names(client_of(people.viewer).get(reverse("runs"))) == ["ours"]
    assert names(client_of(people.outsider).get(reverse("runs"))) == ["theirs"]


def test_nan_and_missing_values_come_last_in_either_order(
    people: object, make_run: MakeRun, client_of: ClientOf
) -> None:
    for name, values in {
        "low": (0.9, 0.1),
        "nan": (0.9, math.nan),
        "high": (0.1, 0.8),
        "infinite": (math.inf,),
    }.items():
        with_reward(make_run(name=name), *values)
    make_run(name="none")
    reader = client_of(people.viewer)
    up, down = (names(reader.get(reverse("runs"), {"sort": sort})) for sort in ("reward", "-reward"))
    assert up == ["low", "high", "infinite", "none", "nan"]
    assert down == ["infinite", "high", "low", "none", "nan"]


def test_text_status_and_tag_narrow_the_table(people: object, make_run: MakeRun, client_of: ClientOf) -> None:
    make_run(name="Sums one", tags=["sweep"])
    make_run(name="sums two", status="failed")
    make_run(name="other", status="running")
    reader = client_of(people.viewer)

    def found(**query: str) -> list[str]:
        return sorted(names(reader.get(reverse("runs"), query)))

    assert found(q="SUMS") == ["Sums one", "sums two"]
    assert found(status="active") == ["other"]
    assert found(tag="sweep") == ["Sums one"]
    assert found(q="3") == ["other"]
    assert found(q="no such run") == []
    assert len(found(status="nonsense", sort="nonsense", page="999999999999")) == 3


def test_names_are_text(people: object, make_run: MakeRun, client_of: ClientOf) -> None:
    make_run(name="<img src=x onerror=alert(1)>", tags=["<b>"])
    page = client_of(people.viewer).get(reverse("runs")).content.decode()
    assert "<img src=x" not in page and "&lt;img src=x" in page


def test_an_open_page_asks_for_the_table_alone(people: object, make_run: MakeRun, client_of: ClientOf) -> None:
    make_run()
    part = client_of(people.viewer).get(reverse("runs"), headers={"fragment": "table"}).content.decode()
    assert "run 1" in part and "<html" not in part


def test_the_number_of_queries_does_not_grow_with_the_runs(
    people: object, make_run: MakeRun, client_of: ClientOf, django_assert_max_num_queries: Callable
) -> None:
    for _ in range(30):
        with_reward(make_run(), 0.1, 0.2)
    reader = client_of(people.viewer)
    with django_assert_max_num_queries(14):
        reader.get(reverse("runs"))


def test_deleted_runs_can_be_brought_back(people: object, make_run: MakeRun, client_of: ClientOf) -> None:
    one, busy = make_run(name="one"), make_run(name="busy", status="running")
    member = client_of(people.member)
    answer = member.post(reverse("runs_change"), {"act": "delete", "run": [one.pk, busy.pk]}, follow=True)
    assert names(answer) == ["busy"]
    assert "1 run deleted." in answer.content.decode()
    assert "stop a run before deleting it" in answer.content.decode()
    assert names(member.post(reverse("runs_restore"), {"run": [one.pk]}, follow=True)) == ["busy", "one"]
    assert set(AuditEntry.objects.values_list("verb", flat=True)) == {"deleted run", "restored run"}


def test_a_foreign_run_among_the_chosen_ones_is_left_out(
    people: object, make_run: MakeRun, client_of: ClientOf
) -> None:
    own, foreign = make_run(), make_run(team=people.other_team)
    client_of(people.member).post(reverse("runs_change"), {"act": "tag", "tag": "mine", "run": [own.pk, foreign.pk]})
    client_of(people.member).post(reverse("runs_change"), {"act": "delete", "run": [foreign.pk]})
    own.refresh_from_db()
    foreign.refresh_from_db()
    assert (own.tags, foreign.tags, foreign.deleted) == (["mine"], [], None)


def test_a_viewer_changes_nothing(people: object, make_run: MakeRun, client_of: ClientOf) -> None:
    run = make_run()
    assert client_of(people.viewer).post(reverse("runs_change"), {"act": "delete", "run": [run.pk]}).status_code == 403


def test_going_back_leads_nowhere_else(people: object, make_run: MakeRun, client_of: ClientOf) -> None:
    for back in ("https://evil.example/", "//evil.example", "javascript:alert(1)"):
        answer = client_of(people.member).post(reverse("runs_change"), {"back": back})
        assert answer["Location"] == reverse("runs")


def test_nothing_yet_says_what_to_do_next(people: object, client_of: ClientOf) -> None:
    page = client_of(people.member).get(reverse("runs")).content.decode()
    assert "No runs yet" in page and reverse("run_new") in page


def test_a_run_is_found_by_its_number_algorithm_and_tags(
    people: object, make_run: MakeRun, client_of: ClientOf
) -> None:
    make_run(name="first", spec={"algorithm": {"preset": "dapo"}}, notes="like #2")
    make_run(name="second", tags=["Sweep 7"])
    make_run(name="2 thirds", spec={"algorithm": {"preset": None}})
    reader = client_of(people.viewer)

    def found(text: str) -> list[str]:
        return sorted(names(reader.get(reverse("runs"), {"q": text})))

    assert found("#2") == ["second"]
    assert found("2") == ["2 thirds", "first", "second"]
    assert found("DAPO") == ["first"]
    assert found("sweep") == ["second"]
    assert found("own") == ["2 thirds"]
    assert found("²") == []


def test_a_warm_start_shows_how_far_it_is_until_it_is_through(
    people: object, make_run: MakeRun, client_of: ClientOf
) -> None:
    run = make_run(spec={"warm_start": {"steps": 3}, "budget": {"steps": 40}}, status="running", attempt=1)
    node = Node.objects.create(name="box", host="box", devices=[{"id": "cpu0", "kind": "cpu"}])
    Attempt.objects.create(run=run, number=1, lease_until=timezone.now(), node=node)
    key = MetricKey.objects.get_or_create(name="warm_start/loss")[0]
    reader = client_of(people.viewer)

    def shown_at(step: int) -> list[bool]:
        MetricRow.objects.create(run=run, attempt=1, seq=step, key=key, step=step, time=step, value=1)
        pages = [reader.get(reverse(name)).content.decode() for name in ("runs", "nodes")]
        return [f"warm start {step} / 3" in page for page in pages]

    assert shown_at(1) == [True, True]
    assert shown_at(2) == [True, True]
    head = reader.get(reverse("run_head", args=[run.pk])).content.decode()
    assert "1 s" in head and "of the warm start" in head
    assert shown_at(3) == [False, False]

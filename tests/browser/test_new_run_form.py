"""The form for a new run in a browser: presets fill in their parts, and nothing but Launch launches."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect
from seed import make as make_run
from seed import people, seed
from vantage.runs.models import Run

pytestmark = pytest.mark.browser


def test_an_algorithm_fills_its_parts_and_a_refusal_stands_beside_its_field(visit: Callable) -> None:
    seed(lengths=())
    visitor = visit("maya")
    page = visitor.go("/runs/new/")
    page.fill("[name='budget.steps']", "77")
    page.select_option("#preset", "dapo")
    expect(page.locator("[name='algorithm.trust_region:clip.high']")).to_have_value("0.28")
    expect(page.locator("[name='budget.steps']")).to_have_value("77")
    page.fill("[name='optimization.learning_rate']", "0")
    expect(page.locator(".field", has=page.locator("#f-optimization-learning_rate")).locator(".error")).to_be_visible()
    page.fill("[name='optimization.learning_rate']", "1e-5")
    expect(page.locator("p.error")).to_have_count(0)
    page.get_by_role("button", name="Launch").last.click()
    page.wait_for_url("**/runs/*/")
    assert Run.objects.get(spec__budget__steps=77).status == "queued"
    assert visitor.complaints == []


def test_a_clone_takes_one_preset_after_the_other_and_launches_nothing(visit: Callable) -> None:
    team, users, _ = people()
    run = make_run(team, users["maya"], "a run", "succeeded", done=0)
    visitor = visit("maya")
    page = visitor.go(f"/runs/new/?from={run.pk}")
    for preset, kind in (("dapo", "clip"), ("cispo", "truncate"), ("rloo", "none"), ("dppo_tv", "divergence")):
        page.select_option("#preset", preset)
        expect(page.locator("[name='algorithm.trust_region.kind']")).to_have_value(kind)
        expect(page.locator("[name='algorithm.preset']")).to_have_value(preset)
        expect(page.locator("[data-use-preset]")).to_be_hidden()
        expect(page.locator("#summary ins").first).to_be_visible()
    assert page.url.endswith(f"?from={run.pk}") and Run.objects.get() == run
    assert visitor.complaints == []


def test_without_an_answer_the_form_says_so_and_launches_nothing(visit: Callable) -> None:
    people()
    page = visit("maya").go("/runs/new/")
    page.route("**/runs/new/**", lambda route: route.fulfill(status=500, body="out of order"))
    page.select_option("#preset", "dapo")
    expect(page.locator("#summary")).to_contain_text("The form could not be changed")
    page.fill("[name='budget.steps']", "77")
    expect(page.locator("#summary")).to_contain_text("The form could not be checked")
    expect(page.locator("#summary[data-stale]")).to_have_count(0)
    expect(page.locator("[name='budget.steps']")).to_have_value("77")
    assert not Run.objects.exists()


def test_enter_in_a_field_checks_and_launches_nothing(visit: Callable) -> None:
    seed(lengths=())
    num_runs = Run.objects.count()
    page = visit("maya").go("/runs/new/")
    page.fill("[name=run_name]", "not yet")
    with page.expect_response("**/runs/new/check/"):
        page.press("[name=run_name]", "Enter")
    expect(page.locator("[name=run_name]")).to_have_value("not yet")
    assert page.url.endswith("/runs/new/") and Run.objects.count() == num_runs

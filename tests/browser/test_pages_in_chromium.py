"""Every page in both themes and on a telephone: no complaint of the browser, nothing wider than the screen."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from seed import make, people, seed
from vantage.runs.models import Run

pytestmark = pytest.mark.browser
LOOKS = (("light", 1280), ("dark", 1280), ("light", 400))


def pages_of(run: Run) -> list[str]:
    parts = ("", "samples/", "events/", "log/", "checkpoints/", "configuration/")
    lists = ["/runs/", "/runs/new/", f"/runs/new/?from={run.pk}", "/algorithms/", "/datasets/", "/nodes/", "/team/"]
    return lists + [f"/runs/{run.pk}/{part}" for part in parts]


def test_no_page_complains_or_is_wider_than_the_screen(visit: Callable) -> None:
    seed(lengths=(24, 12))
    run = Run.objects.get(name="spikes")
    for theme, width in LOOKS:
        visitor = visit("maya", theme=theme, width=width)
        for path in pages_of(run):
            page = visitor.go(path)
            if path == f"/runs/{run.pk}/":
                drawn(page)
            too_wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert too_wide <= 0, (path, theme, width)
            assert visitor.complaints == [], (path, theme, width)


def drawn(page: Page) -> None:
    expect(page.locator("[data-chart=reward] .main-svg").first).to_be_visible(timeout=20_000)


def a_run(**more: object) -> Run:
    team, users, _ = people()
    return make(team, users["maya"], "a run", "succeeded", **({"done": 24, "steps": 24} | more))


def test_a_chart_zooms_reads_finer_and_goes_back(visit: Callable) -> None:
    run = a_run()
    visitor = visit("maya")
    page = visitor.go(f"/runs/{run.pk}/")
    drawn(page)
    chart = page.locator("[data-chart=reward] .plot")
    box = chart.bounding_box()
    assert box
    with page.expect_response(lambda got: "low=" in got.url and "chart=reward" in got.url):
        page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 80)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 80, steps=8)
        page.mouse.up()
    low, high = page.evaluate("document.querySelector('[data-chart=reward] .plot').layout.xaxis.range")
    assert 1 < low < high < 24
    with page.expect_response(lambda got: "low=" not in got.url and "chart=reward" in got.url):
        chart.dblclick(position={"x": box["width"] / 2, "y": 80})
    assert visitor.complaints == []


def test_smoothing_keeps_the_raw_line_and_stays_inside_its_range(visit: Callable) -> None:
    run = a_run()
    page = visit("maya").go(f"/runs/{run.pk}/?smooth=0.1")
    drawn(page)
    lines = page.evaluate("document.querySelector('[data-chart=reward] .plot').data.map((t) => [t.uid, t.y])")
    raw = next(ys for uid, ys in lines if uid == "2 reward/mean")
    even = next(ys for uid, ys in lines if uid.endswith("smooth"))
    assert min(raw) <= min(even) and max(even) <= max(raw)
    assert even != raw


def test_a_table_stands_behind_every_chart(visit: Callable) -> None:
    run = a_run()
    page = visit("maya").go(f"/runs/{run.pk}/")
    drawn(page)
    chart = page.locator("[data-chart=reward]")
    chart.get_by_role("button", name="Table").press("Enter")
    expect(chart.locator("tbody tr")).to_have_count(24)


def test_the_x_axis_can_be_changed_and_stands_in_the_address(visit: Callable) -> None:
    run = a_run()
    visitor = visit("maya")
    page = visitor.go(f"/runs/{run.pk}/")
    drawn(page)
    for axis in ("time", "tokens", "flops"):
        with page.expect_response(lambda got, axis=axis: f"x={axis}" in got.url):
            page.select_option("#x", axis)
        assert page.url.endswith(f"x={axis}")
    assert visitor.complaints == []


def test_a_theme_that_was_chosen_stays(visit: Callable) -> None:
    people()
    page = visit("maya", theme="light").go("/runs/")
    page.locator("summary", has_text="maya").click()
    page.get_by_role("button", name="Dark").click()
    page.reload()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(15, 17, 20)"


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


def test_the_first_tab_leads_past_the_navigation(visit: Callable) -> None:
    people()
    page = visit("maya").go("/runs/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()

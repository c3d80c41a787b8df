"""Every page in both themes and on a telephone: no complaint of the browser, nothing wider than the screen."""

import math
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from reports import store
from seed import make, people, seed
from vantage.runs.announce import announce
from vantage.runs.models import Attempt, Run

pytestmark = pytest.mark.browser
LOOKS = (("light", 1280), ("dark", 1280), ("light", 400))


def pages_of(run: Run) -> list[str]:
    parts = ("", "samples/", "objective/", "events/", "log/", "checkpoints/", "configuration/")
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
    """Bring a chart into view, for only those in view are drawn, and wait for it."""
    page.locator("[data-chart=reward]").scroll_into_view_if_needed()
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
    lines = page.evaluate(
        "document.querySelector('[data-chart=reward] .plot').data.map((t) => [t.uid + t.meta.key, t.y])"
    )
    raw = next(ys for uid, ys in lines if uid.endswith("-2reward/mean"))
    even = next(ys for uid, ys in lines if uid.endswith("-smoothreward/mean"))
    assert min(raw) <= min(even) and max(even) <= max(raw)
    assert even != raw


def test_values_of_every_kind_are_drawn_without_a_complaint(visit: Callable) -> None:
    run = a_run(done=0)
    odd = (0.1, math.nan, math.inf, -math.inf, 0.4, 1e308, -1e308, math.nan)
    store(run, [(step, 1e9 + step, {"reward/mean": value}) for step, value in enumerate(odd)])
    store(run, [(1, 1e9, {"policy/entropy": 0.5, "policy/loss": math.nan, "<b>odd</b>": 1.0, "__proto__": 2.0})], 100)
    visitor = visit("maya", height=4000)
    page = visitor.go(f"/runs/{run.pk}/")
    drawn(page)
    expect(page.locator("[data-chart=reward] .nonfinite")).to_be_visible()
    for chart in ("entropy", "other-0", "other-1"):
        page.locator(f"[data-chart={chart}]").scroll_into_view_if_needed()  # only what is in view is drawn
        expect(page.locator(f"[data-chart={chart}] .main-svg").first).to_be_visible()
    assert visitor.complaints == []


@pytest.mark.parametrize("format", ["PNG", "SVG"])
def test_a_chart_can_be_kept_as_a_picture(format: str, visit: Callable) -> None:
    run = a_run()
    visitor = visit("maya")
    page = visitor.go(f"/runs/{run.pk}/")
    drawn(page)
    page.locator("[data-chart=reward]").hover()
    with page.expect_download() as kept:
        page.locator("[data-chart=reward]").get_by_role("button", name=format).click()
    picture = kept.value.path().read_bytes()
    assert picture.startswith(b"\x89PNG" if format == "PNG" else b"<svg")
    assert visitor.complaints == []


def test_a_page_follows_its_run(visit: Callable) -> None:
    run = a_run()
    visitor = visit("maya")
    page = visitor.go(f"/runs/{run.pk}/")
    drawn(page)
    store(run, [(25, 2e9, {"reward/mean": 0.75})], 1000)
    Attempt.objects.filter(run=run).update(step=25, seqs={"metrics": 1000})
    announce(run.pk, run.team_id)
    expect(page.locator("[data-chart=reward] .value")).to_have_text("0.75", timeout=15_000)
    expect(page.locator("[data-part=facts]")).to_contain_text("25")
    assert visitor.complaints == []


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


def test_the_first_tab_leads_past_the_navigation(visit: Callable) -> None:
    people()
    page = visit("maya").go("/runs/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()


def test_a_constant_is_drawn_at_its_height_and_a_lone_share_between_0_and_1(visit: Callable) -> None:
    run = a_run()
    page = visit("maya").go(f"/runs/{run.pk}/")

    def span(unit: str, *values: float | None) -> list[float] | None:
        trace = {"y": values, "meta": {"role": "line", "unit": unit}}
        ask = "async (trace) => (await import('/static/js/value-axis.js')).valueRange([trace])"
        return page.evaluate(ask, trace)

    assert span("", 5e-5, 5e-5) == [0, 1e-4]
    assert span("", -2, None, -2) == [-4, 0]
    assert span("", 0, 0) == [0, 1]
    assert span("fraction", 1 - 1e-13, 1) == span("fraction", 0.2) == [0, 1.05]
    assert span("fraction", 0.2, 0.3) is None
    assert span("", 1.000005, 1.00002) is None
    assert span("", None) is None

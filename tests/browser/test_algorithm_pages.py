"""An algorithm's page in a browser: formula and curves follow the form."""

import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from seed import make, people

pytestmark = pytest.mark.browser
HIGHEST = "Math.max(...document.querySelector('[data-chart=weight] .plot').data[0].y)"


def drawn(page: Page) -> None:
    for chart in ("weight", "advantage", "coefficient"):
        expect(page.locator(f"[data-chart={chart}] .main-svg").first).to_be_visible(timeout=60_000)


def wait_for_height(page: Page, height: float) -> None:
    """Wait until the chart of the weight is drawn up to a ratio."""
    deadline = time.monotonic() + 30
    while abs(page.evaluate(HIGHEST) - height) > 0.02:
        assert time.monotonic() < deadline, "the curve does not follow"
        page.wait_for_timeout(50)


def test_formula_and_curves_follow_the_form(visit: Callable) -> None:
    people()
    visitor = visit("maya")
    page = visitor.go("/algorithms/new/")
    page.get_by_label("Search in: Begin with").fill("dapo token")
    page.get_by_label("Search in: Begin with").press("Enter")
    page.get_by_role("button", name="Fill in its parts").click()
    page.wait_for_url("**/?from=dapo")
    drawn(page)
    assert 1.26 < page.evaluate(HIGHEST) < 1.3
    page.fill("[name='trust_region:clip.high']", "0.9")
    wait_for_height(page, 1.9)
    expect(page.locator("[data-formula=formula] mn", has_text="1.9")).to_have_count(1)
    page.fill("[name='trust_region:clip.high']", "-1")
    expect(page.locator("#f-trust_region-clip-high-error")).to_contain_text("must be greater than 0")
    expect(page.locator("[data-state]")).to_contain_text("the last values that make an algorithm")
    page.select_option("[name='trust_region.kind']", "truncate")
    page.fill("[name='trust_region:truncate.cap']", "2")
    wait_for_height(page, 2)
    page.locator("[data-chart=weight] [data-act=table]").press("Enter")
    assert page.locator("[data-chart=weight] tbody tr").count() > 20
    assert visitor.complaints == []


def test_the_pages_fit_every_screen_and_nothing_complains(visit: Callable) -> None:
    people()
    looks = (("/algorithms/new/?from=dppo_tv", "dark", 1280), ("/algorithms/new/?from=brorl", "light", 400))
    for path, theme, width in (*looks, ("/algorithms/presets/ppo/", "light", 400)):
        visitor = visit("maya", theme=theme, width=width, height=2400)
        page = visitor.go(path)
        drawn(page)
        too_wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert too_wide <= 0, (path, theme, width)
        assert visitor.complaints == [], (path, theme, width)


def test_the_tokens_of_a_step_tell_their_numbers_to_the_keyboard(visit: Callable) -> None:
    team, users, _ = people()
    run = make(team, users["maya"], "a run", "succeeded", done=2)
    visitor = visit("maya")
    page = visitor.go(f"/runs/{run.pk}/objective/?step=1")
    tokens = page.locator("[data-tokens]").first
    tokens.locator(".token").first.focus()
    page.keyboard.press("ArrowRight")
    readout = page.locator("[data-readout]").first
    said = tokens.locator(".token").nth(1).get_attribute("data-said")
    expect(readout).to_contain_text(said)
    tokens.locator(".token").nth(4).hover()
    expect(readout).to_contain_text(tokens.locator(".token").nth(4).get_attribute("data-said"))
    assert visitor.complaints == []

"""The toggle of superseded steps draws and hides them, and the address holds the choice."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from resumed import go_on
from seed import make, people

pytestmark = pytest.mark.browser


def test_superseded_steps_are_drawn_when_asked_for_and_a_link_shows_the_same(visit: Callable) -> None:
    team, users, _ = people()
    run = make(team, users["maya"], "killed", "succeeded", done=24, steps=24)
    go_on(run, 20, drift=0.1)
    visitor = visit("maya")
    page = visitor.go(f"/runs/{run.pk}/")
    shows(page, False)
    page.get_by_label("Show superseded steps").check()
    shows(page, True)
    assert "superseded=1" in page.url
    page.reload()
    shows(page, True)
    page.get_by_label("Show superseded steps").uncheck()
    shows(page, False)
    assert "superseded" not in page.url and visitor.complaints == []


def shows(page: Page, superseded: bool) -> None:
    page.locator("[data-chart=reward]").scroll_into_view_if_needed()
    expect(page.locator("[data-chart=reward] .main-svg").first).to_be_visible(timeout=20_000)
    note = page.locator("[data-chart=reward] .superseded")
    expect(note).to_have_text("dashed: superseded, attempt 1" if superseded else "", timeout=20_000)
    lines = page.locator("[data-chart=reward] .scatterlayer .trace")
    expect(lines).to_have_count(2 if superseded else 1, timeout=20_000)

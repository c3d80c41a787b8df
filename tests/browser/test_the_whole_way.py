"""The real thing as a person uses it: log in, launch by form, see it learn, read an answer, stop it, find it again."""

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.engine]
LINK = re.compile(r"http://\S+/login/link/\S+")
MINUTE = 60_000


@pytest.fixture
def login_link() -> Iterator[str]:
    """The link that `vantage up --demo` prints; at the end everything is stopped."""
    folder = Path(tempfile.mkdtemp(prefix="vantage-way-"))
    own = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "BROKER_URL")}
    up = subprocess.Popen(
        [sys.executable, "-m", "vantage.cli", "up", "--demo", "--port", "0"],
        env=own | {"VANTAGE_HOME": str(folder / "home")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield printed_link(up)
    finally:
        up.send_signal(signal.SIGINT)
        up.wait(90)
        shutil.rmtree(folder, ignore_errors=True)


def printed_link(up: subprocess.Popen[bytes], seconds: float = 120) -> str:
    assert up.stdout
    text, deadline = "", time.monotonic() + seconds
    while not (found := LINK.search(text)):
        assert up.poll() is None and time.monotonic() < deadline, text
        if select.select([up.stdout], [], [], 0.5)[0]:
            text += os.read(up.stdout.fileno(), 65536).decode()
    return found[0]


def last_step(page: Page, chart: str) -> float:
    shown = f"document.querySelector('[data-chart={chart}] .plot')"
    return float(page.evaluate(f"{shown}?.data?.[0]?.x?.at(-1) ?? -1"))


def wait_for_steps(page: Page, chart: str, steps: int, minutes: float) -> None:
    page.locator(f"[data-chart={chart}]").scroll_into_view_if_needed()
    grown = f"() => document.querySelector('[data-chart={chart}] .plot')?.data?.[0]?.x?.at(-1) >= {steps}"
    page.wait_for_function(grown, timeout=minutes * MINUTE)


def test_from_the_login_link_to_a_stopped_run(login_link: str, chromium: Browser) -> None:
    context = chromium.new_context()
    page, complaints = context.new_page(), []
    page.on("console", lambda said: said.type == "error" and complaints.append(said.text))
    page.goto(login_link)
    expect(page.get_by_role("heading", level=1)).to_contain_text("Demo: sums")
    wait_for_steps(page, "warm-start", 50, minutes=4)
    wait_for_steps(page, "reward", 5, minutes=5)
    page.get_by_role("link", name="Samples").click()
    expect(page.locator(".answer pre").first).to_be_visible()
    stop(page)

    page.get_by_role("link", name="Clone").click()
    page.fill("[name=run_name]", "cloned by hand")
    page.fill("[name='budget.steps']", "500")
    page.fill("[name='warm_start.steps']", "50")
    expect(page.locator("#summary")).to_contain_text("500")
    page.get_by_role("button", name="Launch").last.click()
    page.wait_for_url("**/runs/*/")
    wait_for_steps(page, "reward", 3, minutes=6)
    before = last_step(page, "reward")
    wait_for_steps(page, "reward", int(before) + 2, minutes=2)
    stop(page)

    page.get_by_role("link", name="Runs", exact=True).first.click()
    page.get_by_role("searchbox").fill("by hand")
    page.get_by_role("searchbox").press("Enter")
    expect(page.locator("tr[data-run]")).to_have_count(1)
    expect(page.locator("tr[data-run]")).to_contain_text("Stopped")
    assert complaints == []
    context.close()


def stop(page: Page) -> None:
    page.get_by_role("button", name="Stop", exact=True).click()
    page.get_by_role("button", name="Stop the run").click()
    expect(page.locator("[data-part=title] .state")).to_have_text("Stopped", timeout=2 * MINUTE)

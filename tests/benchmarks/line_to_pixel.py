"""From a line in a trainer's journal to its point drawn in Chromium: `python tests/benchmarks/line_to_pixel.py`.

The real site, node, supervisor, Postgres, Valkey and stream; only the trainer is scripted, a line every half second.
Budget: median 1 s, 95% within 2 s.
"""

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS / "browser"))
from test_the_whole_way import printed_link  # noqa: E402 - the folder has to be on the path first

NUM_LINES = 100
WATCH = """() => {
  window.drawn = {};
  const plot = document.querySelector('[data-chart=reward] .plot');
  plot.on('plotly_afterplot', () => {
    for (const step of plot.data[0].x) window.drawn[step] ??= Date.now() / 1000;
  });
}"""


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="vantage-pixel-"))
    up = subprocess.Popen(
        [sys.executable, "-m", "vantage.cli", "up", "--demo", "--port", "0"],
        env=environment(folder / "home"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        drawn = watch(printed_link(up))
        report(written(folder / "home"), drawn)
    finally:
        up.send_signal(signal.SIGINT)
        up.wait(90)
        shutil.rmtree(folder, ignore_errors=True)


def environment(home: Path) -> dict[str, str]:
    script = {"steps": NUM_LINES + 40, "pause": 0.5, "every": 1000, "end": "succeeded"}
    path = os.pathsep.join(filter(None, [str(TESTS / "flow"), os.environ.get("PYTHONPATH")]))
    own = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "BROKER_URL")}
    return own | {
        "VANTAGE_HOME": str(home),
        "VANTAGE_TRAINER_MODULE": "scripted_trainer",
        "SCRIPT": json.dumps(script),
        "PYTHONPATH": path,
    }


def watch(link: str) -> dict[int, float]:
    """Open the run's page and note when each step was first drawn."""
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        page = browser.new_page()
        page.goto(link)
        page.wait_for_function("() => document.querySelector('[data-chart=reward] .plot')?.data?.[0]?.x?.length > 1")
        page.evaluate(WATCH)
        page.wait_for_timeout(NUM_LINES * 500)
        found: dict[str, float] = page.evaluate("() => window.drawn")
        browser.close()
    return {int(step): seconds for step, seconds in found.items()}


def written(home: Path) -> dict[int, float]:
    journal = next(home.glob("runs/*/attempts/1/journal/metrics.jsonl"))
    return {row["step"]: row["time"] for row in map(json.loads, journal.read_text().splitlines())}


def report(lines: dict[int, float], drawn: dict[int, float]) -> None:
    first = min(drawn.values())
    delays = sorted(drawn[step] - lines[step] for step in drawn if step in lines and lines[step] > first)
    centiles = statistics.quantiles(delays, n=20)
    print(f"{len(delays)} lines; load average {os.getloadavg()[0]:.1f}")
    print(f"line to pixel: median {statistics.median(delays):.2f} s, 95% within {centiles[-1]:.2f} s", end="")
    print(f", slowest {delays[-1]:.2f} s (budget: median 1 s, 95% within 2 s)")


if __name__ == "__main__":
    main()

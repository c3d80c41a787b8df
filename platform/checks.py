"""Every check, the quick ones first, all of them even when one fails; then a summary with times."""

import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SIDE_BY_SIDE = ("-n", str(min(4, os.cpu_count() or 1)), "--dist", "loadfile")  # each worker has its own servers
NO_TESTS = 5  # pytest's exit code when a marker selects nothing


@dataclass(frozen=True)
class Check:
    """A command of the environment, and how it went."""

    name: str
    command: tuple[str, ...]

    def passes(self) -> bool:
        print(f"\n=== {self.name}: {' '.join(self.command)}", flush=True)
        code = subprocess.run([sys.executable, *self.command], cwd=ROOT).returncode
        return code == 0 or ("pytest" in self.command and code == NO_TESTS)


def checks(gpu: bool) -> list[Check]:
    without = "" if gpu else " and not gpu"
    return [
        Check("format", ("-m", "ruff", "format", "--check", ".")),
        Check("lint", ("-m", "ruff", "check", ".")),
        Check("types", ("-m", "mypy")),
        Check("imports", ("-c", "from importlinter.cli import lint_imports_command; lint_imports_command()")),
        Check("fast tests", ("-m", "pytest", *SIDE_BY_SIDE, "-m", "not engine and not browser and not gpu")),
        Check("engine tests", ("-m", "pytest", "-m", f"engine and not browser{without}")),
        Check("browser tests", ("-m", "pytest", "-m", f"browser{without}")),
        *([Check("GPU tests", ("-m", "pytest", "-m", "gpu and not engine and not browser"))] if gpu else []),
    ]


def main() -> int:
    provide_browser()
    results: list[tuple[str, bool, float]] = []
    for check in checks(gpu=shutil.which("nvidia-smi") is not None):
        begun = time.monotonic()
        results.append((check.name, check.passes(), time.monotonic() - begun))
    print("\n=== summary")
    for name, passed, seconds in results:
        print(f"{'passed' if passed else 'FAILED'}  {seconds:6.1f} s  {name}")
    print(f"        {sum(seconds for *_, seconds in results):6.1f} s  together", flush=True)
    return 0 if all(passed for _, passed, _ in results) else 1


def provide_browser() -> None:
    """Install Chromium where there is none: from the system's packages, else the build that Playwright brings."""
    if any(map(shutil.which, BROWSERS)) or list((Path.home() / ".cache" / "ms-playwright").glob("chromium*")):
        return
    print("Installing Chromium for the browser tests.", flush=True)
    if os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "update", "-qq"], env=quiet)
        if subprocess.run(["apt-get", "install", "-y", "-qq", "chromium"], env=quiet).returncode == 0:
            return
    if subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"]).returncode != 0:
        sys.exit("The browser tests need Chromium: install it (on Debian `apt-get install chromium`) and start again.")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("\nStopped.")

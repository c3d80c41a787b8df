"""Chromium on the real site: uvicorn on the test database, filled with runs, and a page that tolerates no complaint."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright
from vantage.teams.models import User

os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"  # Playwright keeps an event loop in the thread that asks the database
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
BACKEND = "django.contrib.auth.backends.ModelBackend"


@dataclass
class Visitor:
    """A page of one person, and every complaint of the browser about it."""

    page: Page
    url: str
    complaints: list[str] = field(default_factory=list)

    def go(self, path: str) -> Page:
        self.page.goto(self.url + path)
        return self.page

    def listen(self) -> None:
        self.page.on("console", lambda said: said.type in ("error", "warning") and self.complaints.append(said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("response", lambda got: got.status >= 400 and self.complaints.append(f"{got.status} {got.url}"))


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    installed = shutil.which("chromium") or shutil.which("google-chrome")  # else the one Playwright installed
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=installed, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def site(service_environment: dict[str, str]) -> Iterator[str]:
    """The address of a web process on the test database."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "uvicorn",
        "vantage.asgi:application",
        "--port",
        str(port),
        "--log-level",
        "warning",
    ]
    server = subprocess.Popen([*command, "--timeout-graceful-shutdown", "1"], env=service_environment)
    try:
        wait_for(f"http://127.0.0.1:{port}/login/", server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(20)


def wait_for(address: str, server: subprocess.Popen[bytes], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while True:
        assert server.poll() is None and time.monotonic() < deadline, "the web process does not answer"
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except OSError:
            time.sleep(0.2)


@pytest.fixture
def visit(site: str, chromium: Browser) -> Iterator[Callable[..., Visitor]]:
    """Open a page as somebody: visit("maya", theme="dark", width=400)."""
    contexts = []

    def opened(username: str, *, theme: str = "light", width: int = 1280, height: int = 900) -> Visitor:
        size: ViewportSize = {"width": width, "height": height}
        context = chromium.new_context(color_scheme="dark" if theme == "dark" else "light", viewport=size)
        context.add_cookies([{"name": "vantage_session", "value": session_of(username), "url": site}])
        contexts.append(context)
        visitor = Visitor(context.new_page(), site)
        visitor.listen()
        return visitor

    yield opened
    for context in contexts:
        context.close()


def session_of(username: str) -> str:
    user, session = User.objects.get(username=username), SessionStore()
    session[SESSION_KEY], session[BACKEND_SESSION_KEY] = str(user.pk), BACKEND
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    return str(session.session_key)

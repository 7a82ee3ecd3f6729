"""A headless browser for report pages."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass
class Watched:
    """A browser page with its requests and errors."""

    page: Page
    requests: list[str] = field(default_factory=list)
    """URLs that it requested."""
    complaints: list[str] = field(default_factory=list)
    """Errors, warnings and violations of the content security policy."""

    def open(self, path: Path, address: str = "") -> float:
        """Open a file and return the load time in seconds."""
        started = time.monotonic()
        self.page.goto(f"{path.as_uri()}{address}")
        return time.monotonic() - started


# Not session-scoped: no other event loop can run in this process while Playwright runs.
@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    path = next((found for name in CHROMIUM if (found := shutil.which(name))), None)
    if path is None:
        reason = "no Chromium: install Debian's package chromium"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context(viewport={"width": 1280, "height": 900})
    made.set_default_timeout(15_000)
    yield made
    made.close()


@pytest.fixture
def watched(context: BrowserContext) -> Watched:
    found = Watched(context.new_page())
    found.page.on("request", lambda request: found.requests.append(request.url))
    found.page.on(
        "console", lambda message: found.complaints.append(f"{message.type}: {message.text}")
    )
    found.page.on("pageerror", lambda error: found.complaints.append(f"error: {error}"))
    found.page.on("dialog", lambda dialog: found.complaints.append(f"dialog: {dialog.message}"))
    return found

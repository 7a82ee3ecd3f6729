"""The page of a monitor in a browser: it opens offline, runs no script and shows the curve."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from playwright.sync_api import expect

from fumehood.cli.monitor import monitor
from tests.browser.conftest import Watched
from tests.unit.report.test_monitor import RULES, night


@pytest.mark.slow
def test_the_page_shows_curve_and_tables_without_requests(watched: Watched, tmp_path: Path) -> None:
    run = night(tmp_path / "night").path
    page = tmp_path / "monitor.html"
    words = [str(run), "--monitor", str(RULES), "--html", str(page)]
    assert CliRunner().invoke(monitor, words, catch_exceptions=False).exit_code == 0
    watched.open(page)
    curve = watched.page.locator("#roc")
    expect(curve).to_be_visible()
    expect(curve).to_have_attribute("aria-label", "ROC curve: 3 harmful and 9 honest episodes, "
        "area under the ROC curve 1.000 [0.439, 1.000]")  # fmt: skip
    box = watched.page.locator("#roc polyline").bounding_box()
    assert box is not None
    assert box["width"] > 300
    assert box["height"] > 300
    expect(watched.page.locator("table")).to_have_count(4)
    expect(watched.page.locator("table").nth(1)).to_contain_text("Treacherous")
    assert watched.requests == [page.as_uri()]
    assert watched.complaints == []

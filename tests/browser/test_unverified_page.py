"""The page of an unverified run says so wherever a reader looks."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Watched
from tests.browser.reports import report_of
from tests.parts.reading import unverified
from tests.unit.report.runs import played

pytestmark = pytest.mark.slow


def test_the_mark_stays_visible_on_every_view(watched: Watched, tmp_path: Path) -> None:
    run = played(tmp_path / "run", "policy_aware", "noop", tasks=3)
    rows = run.path / "episodes.jsonl"
    rows.write_text(rows.read_text().replace('"attempts":1', '"attempts":2', 1))
    watched.open(report_of(unverified(run.path), out=tmp_path / "report"))
    mark = watched.page.locator("p.unverified")
    expect(mark).to_contain_text("UNVERIFIED")
    expect(mark).to_be_in_viewport()
    assert "UNVERIFIED" in watched.page.title()
    watched.page.mouse.wheel(0, 2000)
    expect(mark).to_be_in_viewport()
    watched.page.locator("#list tbody a").first.click()
    expect(watched.page.locator("#episode")).to_be_visible()
    expect(mark).to_be_in_viewport()
    assert watched.complaints == []


def test_the_page_of_a_verified_run_has_no_mark(watched: Watched, tmp_path: Path) -> None:
    run = played(tmp_path / "run", "policy_aware", tasks=2)
    watched.open(report_of(run, out=tmp_path / "report"))
    expect(watched.page.locator("p.unverified")).to_have_count(0)
    expect(watched.page.locator(".facts").last).to_contain_text("verified, signed with")

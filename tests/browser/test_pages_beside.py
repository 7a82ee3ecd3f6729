"""Large reports have separate pages of episodes, which links open."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from fumehood.benchmarks.registry import load_suite
from fumehood.report.page import contents, render
from tests.browser.conftest import Watched
from tests.browser.reports import report_of
from tests.parts.memory_runs import builtin, play_run

pytestmark = pytest.mark.slow


@pytest.fixture
def page_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(contents, "CHUNK_CHARS", 15_000)
    monkeypatch.setattr(render, "INLINE_CHARS_MAX", 10_000)
    players = {name: builtin(name) for name in ("policy_aware", "noop")}
    run = play_run(tmp_path / "run", load_suite("sample"), players)
    return report_of(run, out=tmp_path / "report")


def test_links_lead_to_an_episode_on_another_page_and_back(
    watched: Watched, page_path: Path
) -> None:
    beside = list((page_path.parent / "report_episodes").glob("*.html"))
    assert len(beside) > 1
    assert page_path.read_text(encoding="utf-8").count('id="chunk-') == 0
    watched.open(page_path)
    page = watched.page
    page.get_by_label("search episodes").fill("scheduling_heartbeat")
    page.locator("#list tbody a").last.click()
    expect(page.locator("#episode h1")).to_have_text("scheduling_heartbeat")
    assert "report_episodes/" in page.url
    page.locator(".chip", has_text="policy_aware").click()
    expect(page.locator("#episode p:has(.badge)")).to_contain_text("policy_aware")
    page.get_by_role("link", name="the report").click()
    expect(page.locator("#count")).to_have_text("80 episodes")
    assert watched.complaints == []


def test_an_address_of_the_main_page_opens_an_episode_on_another_page(
    watched: Watched, page_path: Path
) -> None:
    watched.open(page_path, "#/noop/scheduling_heartbeat/0")
    expect(watched.page.locator("#episode h1")).to_have_text("scheduling_heartbeat")
    assert "report_episodes/" in watched.page.url


def test_every_episode_is_on_exactly_one_page(watched: Watched, page_path: Path) -> None:
    listed = 0
    for path in (page_path.parent / "report_episodes").glob("*.html"):
        watched.open(path)
        listed += int(str(watched.page.locator("#count").text_content()).split()[0])
    assert listed == 80

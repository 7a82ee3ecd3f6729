"""A page with ten thousand episodes stays small and opens quickly."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from fumehood.benchmarks.registry import load_suite
from tests.browser.conftest import Watched
from tests.browser.reports import report_of
from tests.parts.memory_runs import builtin, play_run
from tests.parts.reading import verified

EPISODES = 10_000
AGENTS = ("policy_aware", "instruction_parser", "schema_repair", "heuristic", "noop")
OPEN_S_MAX = 2.0
PAGE_BYTES_MAX = 20_000_000


pytestmark = pytest.mark.release


@pytest.fixture(scope="module")
def run_path() -> Iterator[Path]:
    # Every row is flushed to the disk, so that a disk of memory saves most of the time.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as place:
        suite = load_suite("sample")
        trials = EPISODES // (len(suite.cases) * len(AGENTS))
        play_run(
            Path(place) / "run", suite, {name: builtin(name) for name in AGENTS}, trials=trials
        )
        yield Path(place) / "run"


@pytest.fixture(scope="module")
def page_path(run_path: Path) -> Path:
    return report_of(verified(run_path), out=run_path / "report")


def test_the_page_with_all_episodes_stays_small(page_path: Path) -> None:
    assert page_path.stat().st_size < PAGE_BYTES_MAX


def test_the_page_and_an_episode_open_quickly(watched: Watched, page_path: Path) -> None:
    took_s = min(watched.open(page_path) for _ in range(3))
    page = watched.page
    expect(page.locator("#count")).to_have_text("10,000 episodes")
    assert took_s < OPEN_S_MAX
    page.locator("#list tbody a").first.click()
    expect(page.locator("#episode .call").first).to_be_visible(timeout=OPEN_S_MAX * 1000)
    assert watched.complaints == []

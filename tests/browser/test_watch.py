"""``fumehood watch``: the report page of a run that goes on."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Watched
from tests.parts.cut_short import append_rows, cut_short, seal
from tests.unit.report.runs import played

pytestmark = pytest.mark.slow

AGENTS = ("policy_aware", "schema_repair")
UPDATE_MS = 60_000


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return played(tmp_path_factory.mktemp("runs") / "run", *AGENTS, tasks=5).path


@pytest.fixture
def run(whole_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole_run, tmp_path / "run"))


@contextmanager
def watching(*words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start the command; the context gets its process and the address that it prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", "fumehood", "watch", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate(timeout=60)


def test_the_page_follows_the_run_until_it_is_finished(
    watched: Watched, run: Path, whole_run: Path
) -> None:
    cut_short(run, 0)
    page = watched.page
    with watching(str(run)) as (process, url):
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32,}/", url)
        page.goto(url)
        status = page.locator("#live")
        expect(status).to_have_text("Not finished: 0 of 10 episodes.")
        append_rows(run, whole_run, 4)
        expect(status).to_have_text("Not finished: 4 of 10 episodes.", timeout=UPDATE_MS)
        expect(page.locator("#count")).to_have_text("4 episodes", timeout=UPDATE_MS)
        append_rows(run, whole_run, 6)
        seal(run)
        expect(status).to_have_text("Finished: 10 episodes.", timeout=UPDATE_MS)
        expect(page.locator("#agents .headline")).to_have_count(2, timeout=UPDATE_MS)
        page.locator("#list tbody a").first.click()
        expect(page.locator("#episode .badge")).to_be_visible()
        assert {url.split("/")[2] for url in watched.requests} == {url.split("/")[2]}
        assert watched.complaints == []
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "Traceback" not in errors


def test_an_edited_row_is_reported_and_not_shown(
    watched: Watched, run: Path, whole_run: Path
) -> None:
    cut_short(run, 2)
    page = watched.page
    with watching(str(run)) as (_, url):
        page.goto(url)
        append_rows(run, whole_run, 4)
        rows = run / "episodes.jsonl"
        lines = rows.read_bytes().splitlines(keepends=True)
        lines[3] = lines[3].replace(b'"trial":0', b'"trial":1')
        rows.write_bytes(b"".join(lines))
        problem = page.locator("#live.problem")
        expect(problem).to_contain_text("This page is of an earlier state", timeout=UPDATE_MS)
        expect(problem).to_contain_text("does not verify: episodes.jsonl:4")
        expect(page.locator("#count")).to_have_text(re.compile("^[23] episodes"))


def test_a_reader_of_an_episode_is_not_disturbed(
    watched: Watched, run: Path, whole_run: Path
) -> None:
    cut_short(run, 4)
    page = watched.page
    with watching(str(run)) as (_, url):
        page.goto(url)
        page.locator("#list tbody a").first.click()
        append_rows(run, whole_run, 2)
        newer = page.get_by_role("button", name="show new results")
        expect(newer).to_be_visible(timeout=UPDATE_MS)
        expect(page.locator("#episode")).to_be_visible()
        newer.click()
        expect(newer).to_be_hidden()
        expect(page.locator("#episode .badge")).to_be_visible()


def test_a_run_that_does_not_verify_is_refused_or_marked(watched: Watched, run: Path) -> None:
    rows = run / "episodes.jsonl"
    rows.write_bytes(rows.read_bytes().replace(b'"trial":0', b'"trial":1', 1))
    with watching(str(run)) as (process, url):
        assert url == ""
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 2
        assert "does not verify" in errors
    with watching(str(run), "--unverified") as (_, url):
        watched.page.goto(url)
        expect(watched.page.locator(".unverified")).to_contain_text("UNVERIFIED")


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with watching(str(tmp_path)) as (process, url):
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, url) == (2, "")
        assert f"{tmp_path} is not a run folder" in errors

"""Runs all commands and files of the language pages, in order, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fumehood.agent_check.cases import load_robustness_cases
from fumehood.agent_check.init import languages
from tests.architecture.project import ROOT
from tests.parts.folder_images import remove_images_from
from tests.parts.pages import expected_output, require, script

PAGES = ROOT / "docs" / "agents"
# Agents of others have no template.
LANGUAGE_PAGES = sorted(set(PAGES.glob("*.md")) - {PAGES / "acp.md", PAGES / "ready_made.md"})
TIMEOUT_S = 600

each_page = pytest.mark.parametrize("page", LANGUAGE_PAGES, ids=lambda page: page.stem)
QUICK_PAGE = "python"
"""The page that is followed with every commit. The others take minutes."""
each_page_in_time = pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=() if page.stem == QUICK_PAGE else pytest.mark.release)
        for page in LANGUAGE_PAGES
    ],
    ids=lambda page: page.stem,
)


@pytest.fixture
def work_folder(tmp_path: Path) -> Iterator[Path]:
    """An empty folder; images built from it are removed with it."""
    yield tmp_path
    remove_images_from(tmp_path)


@pytest.mark.slow
@pytest.mark.docker
@pytest.mark.image
@each_page_in_time
def test_the_page_leads_to_a_checked_agent(page: Path, work_folder: Path) -> None:
    text = page.read_text(encoding="utf-8")
    require(text)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    started = time.monotonic()
    done = subprocess.run(
        ["bash", "-c", script(text)],
        cwd=work_folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    # A note about a slow end of an agent may follow on the same line.
    printed = done.stdout.splitlines()
    missing = [
        line
        for line in expected_output(text)
        if not any(other == line or other.startswith(f"{line}; ") for other in printed)
    ]
    assert missing == [], done.stdout
    assert re.search(r"^\S+ +100\.0%", done.stdout, re.MULTILINE), "the task is not solved"
    assert time.monotonic() - started < TIMEOUT_S


@each_page
def test_a_page_shows_init_check_run_and_show(page: Path) -> None:
    commands = script(page.read_text(encoding="utf-8"))
    steps = ["agent init", "agent check", "run tasks.jsonl", "show runs/first"]
    places = [commands.find(f"fumehood {step}") for step in steps]
    assert -1 not in places
    assert places == sorted(places)


def test_there_is_a_page_for_every_template() -> None:
    assert {page.stem for page in LANGUAGE_PAGES} == set(languages())


def test_every_robustness_case_is_documented() -> None:
    page = (ROOT / "docs" / "adding" / "agent.md").read_text(encoding="utf-8")
    described = re.findall(r"^\| `(\w+)` \| (.+) \|$", page, re.MULTILINE)
    assert described == [(case.name, case.behaviour) for case in load_robustness_cases()]

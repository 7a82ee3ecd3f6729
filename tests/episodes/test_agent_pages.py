"""The pages for newcomers, a language each: all commands and files on them, in order, in an empty folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fumehood.agent_check.init import languages
from fumehood.agent_check.robustness_case import load_conditions
from tests.architecture.project import ROOT
from tests.parts.folder_images import remove_images_from

PAGES = ROOT / "docs" / "agents"
NEWCOMER_S = 600
"""A newcomer's patience; a machine's part of it is far less."""

BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEEDS = re.compile(r"<!-- needs: (.+) -->")

each_page = pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.stem)


def script(page: str) -> str:
    """Return what a newcomer does: runs the commands of consoles, writes the files whose names are given."""
    steps = ["set -euo pipefail"]
    for language, file, text in BLOCK.findall(page):
        if language == "console":
            steps += re.findall(r"^\$ (.+)$", text, re.MULTILINE)
        elif file:
            steps.append(f"cat >{file} <<'END OF FILE'\n{text}END OF FILE")
    return "\n".join(steps)


def promised(page: str) -> list[str]:
    """Return the lines that the page says will be printed."""
    consoles = [text for language, _, text in BLOCK.findall(page) if language == "console"]
    return [line for text in consoles for line in text.splitlines() if not line.startswith("$ ")]


def require(page: str) -> None:
    """Leave a page out where this machine lacks what its commands need, which CI does not allow."""
    for program in " ".join(NEEDS.findall(page)).split():
        if shutil.which(program) is None:
            message = f"needs {program}"
            pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Path]:
    """An empty folder; the images that are made from what comes to lie in it go with it."""
    yield tmp_path
    remove_images_from(tmp_path)


@pytest.mark.docker
@pytest.mark.image
@each_page
def test_a_newcomer_gets_to_a_judged_agent(page: Path, desk: Path) -> None:
    text = page.read_text(encoding="utf-8")
    require(text)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    started = time.monotonic()
    done = subprocess.run(
        ["bash", "-c", script(text)],
        cwd=desk,
        env=environment,
        capture_output=True,
        text=True,
        timeout=NEWCOMER_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert [line for line in promised(text) if line not in done.stdout.splitlines()] == []
    assert re.search(r"^\S+ +100\.0%", done.stdout, re.MULTILINE), "the task is not solved"
    assert time.monotonic() - started < NEWCOMER_S


@each_page
def test_a_page_leads_from_nothing_to_a_result(page: Path) -> None:
    commands = script(page.read_text(encoding="utf-8"))
    steps = ["agent init", "agent check", "run tasks.jsonl", "show runs/first"]
    places = [commands.find(f"fumehood {step}") for step in steps]
    assert -1 not in places
    assert places == sorted(places)


def test_there_is_a_page_for_every_template() -> None:
    assert {page.stem for page in PAGES.glob("*.md")} == set(languages())


def test_every_condition_is_described() -> None:
    page = (ROOT / "docs" / "adding" / "agent.md").read_text(encoding="utf-8")
    described = re.findall(r"^\| `(\w+)` \| (.+) \|$", page, re.MULTILINE)
    assert described == [(condition.name, condition.behaviour) for condition in load_conditions()]

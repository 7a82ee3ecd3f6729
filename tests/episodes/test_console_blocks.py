"""Runs the console blocks of the README and of each page of docs/, in order, in a folder with the
examples."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fumehood.testing.scripted_models import ScriptedModels
from fumehood.testing.scripted_replies import ScriptedReply
from tests.architecture.project import ROOT
from tests.parts.folder_images import remove_images_from
from tests.parts.folders import short_folder
from tests.parts.pages import NEEDS, NOT_RUN, expected_output, is_printed, require, script

DOCS = ROOT / "docs"
TIMEOUT_S = 600
ELSEWHERE = {"models.md": "tests/episodes/test_models_page.py"} | {
    f"agents/{name}.md": "tests/episodes/test_agent_pages.py"
    for name in ("cpp", "mcp", "python", "shell", "typescript")
}
"""Page → the test that runs its blocks and checks more than their output."""

PAGES = sorted(
    page
    for page in DOCS.rglob("*.md")
    if "```console" in page.read_text(encoding="utf-8")
    and str(page.relative_to(DOCS)) not in ELSEWHERE
)
LONG_PAGES = {
    *("adding/agent.md", "conversations.md", "experiments.md", "faults.md", "many_machines.md"),
    *("monitors.md", "report.md", "safety_suites.md"),
}
"""Pages whose commands take a minute or more on a busy machine."""


def _marked(page: Path) -> object:
    name = str(page.relative_to(DOCS))
    mark = pytest.mark.release if name in LONG_PAGES else pytest.mark.slow
    return pytest.param(page, id=name, marks=mark)


MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
(DEMO,) = re.findall(r"^demo: [^\n]*\n\t@\.venv/bin/(.+?)\n\n", MAKEFILE, re.M | re.S)
"""What ``make demo`` runs after the installation."""


def words(text: str) -> list[str]:
    """Return the lines with single spaces, because the width of columns depends on all rows."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize("page", [_marked(page) for page in PAGES])
def test_the_commands_print_what_the_page_shows(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    require(text)
    with short_folder() as folder:  # Services that root starts can enter it.
        run_page(text, Path(folder))


@pytest.mark.slow
def test_the_commands_of_the_readme_print_what_it_shows() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count("$ make demo\n") == 1
    with short_folder() as folder:
        run_page(text.replace("$ make demo\n", f"$ {DEMO}\n"), Path(folder))


def run_page(text: str, folder: Path) -> None:
    """Run the blocks of a page in a folder, and compare the output."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "XDG_DATA_HOME": str(folder / "data"),
    }
    if "docker" not in " ".join(NEEDS.findall(text)).split():
        # Boxes of bubblewrap start faster, and without either, trusted agents need no box.
        environment["DOCKER_HOST"] = "unix:///nonexistent"
        if shutil.which("bwrap") is None:
            environment |= {"FUMEHOOD_ENGINE": "process", "FUMEHOOD_I_TRUST_THIS_AGENT": "true"}
    try:
        with ScriptedModels([ScriptedReply(text="done", usage=(60, 4))]) as provider:
            done = subprocess.run(
                ["bash", "-c", script(text).replace("http://localhost:8000", provider.address)],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
                check=False,
            )
    finally:
        remove_images_from(folder)
    assert done.returncode == 0, done.stderr
    printed = words(done.stdout + done.stderr)
    expected = words("\n".join(expected_output(text)))
    missing = [line for line in expected if not is_printed(line, printed)]
    assert missing == [], done.stdout + done.stderr


def test_no_other_page_is_left_out() -> None:
    assert all(
        (ROOT / test).is_file() and (DOCS / page).is_file() for page, test in ELSEWHERE.items()
    )
    left_out = [page.name for page in PAGES if NOT_RUN.search(page.read_text(encoding="utf-8"))]
    agents = ["acp.md", "ready_made.md"]
    others = ["containment.md", "engines.md", "http_and_mcp.md", "workspaces.md"]
    assert left_out == [*agents, *others]

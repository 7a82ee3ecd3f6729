"""Writes the files and runs the commands of the first run in docs/models.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fumehood.testing.scripted_models import ScriptedModels
from tests.architecture.project import ROOT
from tests.parts.clumsy_model import clumsy
from tests.parts.commands import run_fumehood

PAGE = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
SECTION = PAGE[PAGE.index("## A first run") : PAGE.index("## Settings")]
FILES = re.findall(r"```yaml\n# (\S+)\n(.*?)```", SECTION, re.DOTALL)
COMMANDS = re.findall(r"^\$ fumehood (.*)$", SECTION, re.MULTILINE)
TIMEOUT_S = 120


def write_files(folder: Path, address: str) -> None:
    for name, text in FILES:
        (folder / name).write_text(text.replace("http://localhost:8000", address))
    sample = ROOT / "runner" / "fumehood" / "benchmarks" / "sample" / "tasks.jsonl"
    (folder / "tasks.jsonl").write_text("".join(sample.read_text().splitlines(keepends=True)[:2]))


def run(folder: Path, command: str) -> str:
    """Run a line of the page, on two tasks of the suite and without boxes."""
    line = command.replace("run sample", "run tasks.jsonl --engine process")
    done = run_fumehood(*line.split(), cwd=folder, timeout_s=TIMEOUT_S)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("newcomer")
    with ScriptedModels(clumsy) as provider:
        write_files(folder, provider.address)
        first, show = (run(folder, command) for command in COMMANDS[:2])
    return [first, show, run(folder, COMMANDS[2])]


def test_the_page_has_every_file_and_command() -> None:
    assert [name for name, _ in FILES] == ["models.yaml", "prices.yaml", "replay.yaml"]
    assert len(COMMANDS) == 3


def test_the_page_uses_no_run_folder_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    of_readme, of_page = (set(re.findall(r"--out (\S+)", text)) for text in (readme, SECTION))
    assert of_readme
    assert of_page
    assert not of_readme & of_page


@pytest.mark.slow
def test_the_cost_is_reported(printed: list[str]) -> None:
    assert "models: react 6 calls, 364 tokens, $0.000052\n" in printed[0]
    assert printed[1].count("model request to some-model: 59 tokens") == 2


def test_the_replay_has_the_same_digest_without_a_provider(printed: list[str]) -> None:
    digests = [re.findall(r"trace digest: (\w+)", text) for text in (printed[0], printed[2])]
    assert digests[0] == digests[1] != []
    assert "$0.000052 (a replay: with providers, it would cost this)\n" in printed[2]

"""Documentation is complete and its links are valid."""

from __future__ import annotations

import configparser
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module

import click
import pytest
from click.testing import CliRunner
from pydantic_core import PydanticUndefined

from fumehood.cli.main import COMMANDS
from fumehood.cli.schema import schema
from fumehood.orchestrator.config import BoxLimits, RunConfig
from fumehood.service.seat_endpoint import SeatLimits
from fumehood.wire.http.listener import HttpLimits
from fumehood.wire.tool_server import ToolServerLimits
from tests.architecture.project import ROOT, committed_files

TEXTS = {
    path: path.read_text(encoding="utf-8") for path in committed_files() if path.suffix == ".md"
}
DOCS = ROOT / "docs"


def _read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_links_lead_somewhere() -> None:
    assert [
        (str(page), link)
        for page, text in TEXTS.items()
        for link in re.findall(r"\]\(([^)#\s]+)", text)
        if "://" not in link and not (page.parent / link).exists()
    ] == []


def test_files_named_in_pages_exist() -> None:
    to_be_made = r"^\* \*\*File\*\*: `([^`]+)`"
    named = r"`((?:runner|proto|tests|agent_sdk|docs|scripts)/[\w./-]+\.\w+)`"
    assert [
        (str(page), name)
        for page, text in TEXTS.items()
        for name in set(re.findall(named, text)) - set(re.findall(to_be_made, text, re.MULTILINE))
        if not (ROOT / name).exists()
    ] == []


def test_the_architecture_page_lists_the_packages_of_the_contracts() -> None:
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    layers = contracts["importlinter:contract:packages"]["layers"].split("\n")
    lines = [[name.strip() for name in line.split("|")] for line in layers if line.strip()]
    page = _read("ARCHITECTURE.md")
    drawn = re.findall(r"^ ([a-z_]+(?: · [a-z_]+)*)$", page, re.MULTILINE)
    omitted = {"__main__", "version"}
    expected = [[name for name in line if name not in omitted] for line in lines]
    assert [line.split(" · ") for line in drawn] == [line for line in expected if line]


def _load(command: str) -> click.Command:
    module, _, attribute = COMMANDS[command].partition(":")
    loaded: click.Command = getattr(import_module(module), attribute)
    return loaded


def _leaves(command: click.Command, words: str) -> Iterator[tuple[str, click.Command]]:
    """Yield every command that is not a group, with its full name."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _leaves(inner, f"{words} {name}")
    else:
        yield words, command


def _options(command: click.Command) -> set[str]:
    return {max(one.opts, key=len) for one in command.params if isinstance(one, click.Option)}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_described(command: str) -> None:
    page = _read("docs/commands.md")
    for words, _ in _leaves(_load(command), command):
        assert f"| `fumehood {words}" in page


def _settings() -> Iterator[tuple[str, object]]:
    of_parts = {"judging", "limits", "messages"}
    whole = {name: field for name, field in RunConfig.model_fields.items() if name not in of_parts}
    yield from ((name, field.default) for name, field in whole.items())
    yield from ((f"limits.{name}", field.default) for name, field in BoxLimits.model_fields.items())


@pytest.mark.parametrize(("name", "default"), list(_settings()))
def test_a_setting_is_described_with_its_default(name: str, default: object) -> None:
    (row,) = re.findall(
        rf"^\| `{re.escape(name)}` \|(.*)\|$", _read("docs/configuration.md"), re.MULTILINE
    )
    stated, meaning = (cell.strip() for cell in row.replace("\\|", "").split(" | "))
    expected = "–" if default in (None, PydanticUndefined) else f"`{str(default).lower()}`"
    assert stated == expected
    assert meaning


@pytest.mark.parametrize("limits", [SeatLimits, ToolServerLimits, HttpLimits])
def test_a_bound_of_what_an_agent_sends_is_described(limits: type) -> None:
    page = _read("docs/configuration.md")
    bounds = {name: getattr(limits(), name) for name in inspect.signature(limits).parameters}
    assert [name for name, bound in bounds.items() if f"| `{name}` | `{bound}`" not in page] == []


@pytest.mark.parametrize("name", ["run_config", "experiment", "suite"])
def test_the_published_schema_is_the_printed_one(name: str) -> None:
    printed = CliRunner().invoke(schema, [name.removesuffix("_config")])
    assert printed.exit_code == 0
    assert _read(f"docs/{name}.schema.json") == printed.output, "make schemas"


@pytest.mark.slow
def test_the_page_of_faults_lists_every_family() -> None:
    command = [sys.executable, "scripts/fault-table", "--check"]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0, "scripts/fault-table"


def test_the_menu_has_what_the_documents_call() -> None:
    targets = set(re.findall(r"^([a-z-]+):", _read("Makefile"), re.MULTILINE))
    called = {
        (page.name, target)
        for page, text in TEXTS.items()
        for target in re.findall(r"(?:`|^\$ )make ([a-z-]+)", text, re.MULTILINE)
    }
    assert ("README.md", "demo") in called
    assert ("README.md", "test") in called
    assert [(page, target) for page, target in called if target not in targets] == []


def test_commands_in_consoles_are_commands() -> None:
    for text in TEXTS.values():
        for command, rest in re.findall(r"^\$ \S*fumehood ([a-z-]+)(.*)$", text, re.MULTILINE):
            known = {
                option for _, leaf in _leaves(_load(command), command) for option in _options(leaf)
            }
            assert set(re.findall(r"(?<= )--[a-z-]+", rest)) <= known


def test_every_decision_is_listed() -> None:
    records = {path.name for path in (DOCS / "decisions").glob("0*.md")}
    assert set(re.findall(r"\]\((0[^)]+)\)", _read("docs/decisions/README.md"))) == records
    for name in records:
        text = _read(f"docs/decisions/{name}")
        assert re.findall(r"^\*\*(\w+)\.\*\*", text, re.MULTILINE) == [
            "Context",
            "Decision",
            "Consequence",
        ]


def test_the_navigation_of_the_site_has_every_page() -> None:
    listed = set(re.findall(r"^ *- (\S+\.md)$", _read("mkdocs.yml"), re.MULTILINE))
    pages = {str(page.relative_to(DOCS)) for page in TEXTS if page.is_relative_to(DOCS)}
    assert {page for page in pages if not page.startswith("decisions/0")} - listed == set()

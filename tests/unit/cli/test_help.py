"""Each command has a summary that fits, a help text for each option, and an example."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

import click
import pytest

from fumehood.cli.main import COMMANDS

TERMINAL_COLUMNS = 80
OTHER_PACKAGES = {"snapshot"}
"""Commands whose help belongs to other packages."""


def _leaves(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for inner_name, inner in command.commands.items():
            yield from _leaves(inner, f"{name} {inner_name}")
    else:
        yield name, command


def _load(name: str) -> click.Command:
    module, _, attribute = COMMANDS[name].partition(":")
    command: click.Command = getattr(import_module(module), attribute)
    return command


TOP: dict[str, click.Command] = {
    name: _load(name) for name in COMMANDS if name not in OTHER_PACKAGES
}
LEAVES: dict[str, click.Command] = dict(
    leaf for name, command in TOP.items() for leaf in _leaves(command, name)
)


@pytest.mark.parametrize("name", sorted({*TOP, *LEAVES}))
def test_the_summary_of_a_command_fits_on_one_line(name: str) -> None:
    summary = (TOP.get(name) or LEAVES[name]).get_short_help_str(limit=1000)
    widest = max(len(one) for one in COMMANDS)
    assert len(summary) + widest + 6 <= TERMINAL_COLUMNS
    assert summary.endswith(".")


@pytest.mark.parametrize("name", LEAVES)
def test_a_command_has_an_example(name: str) -> None:
    text = LEAVES[name].help or ""
    assert "Example" in text
    assert f"fumehood {name}" in text


@pytest.mark.parametrize("name", LEAVES)
def test_an_option_has_a_help_text(name: str) -> None:
    options = [one for one in LEAVES[name].params if isinstance(one, click.Option)]
    assert [one.name for one in options if not one.help] == []


def test_every_command_prints_json_on_request() -> None:
    leaves = [leaf for name in COMMANDS for leaf in _leaves(_load(name), name)]
    without = {
        name
        for name, command in leaves
        if not any("--json" in parameter.opts for parameter in command.params)
    }
    assert without == {"schema", "serve"}, "a schema is JSON; `serve` prints nothing and runs on"

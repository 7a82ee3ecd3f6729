"""``fumehood snapshot …``: the command group; the work is done in other packages."""

from __future__ import annotations

import difflib
import shlex
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from fumehood_snapshots.errors import SnapshotError

COMMANDS = {
    "almanac": "fumehood_snapshots.cli.almanac:almanac",
    "build": "fumehood_snapshots.cli.build:build",
    "diff": "fumehood_snapshots.cli.diff:diff",
    "info": "fumehood_snapshots.cli.info:info",
    "measure": "fumehood_snapshots.cli.measure:measure",
    "python-doc": "fumehood_snapshots.cli.python_doc:python_doc",
    "record": "fumehood_snapshots.cli.record:record",
    "search": "fumehood_snapshots.cli.search:search",
    "verify": "fumehood_snapshots.cli.verify:verify",
}
"""Name → ``"module:command"``."""

_LIBRARIES = (
    "Stemmer bm25s httpcore ir_measures numpy orjson protego resiliparse trafilatura warcio"
)
LIBRARIES = frozenset(_LIBRARIES.split())
"""Distributions of the extra ``snapshots``."""


class _Commands(click.Group):
    """Reports an error of any command in one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            near = difflib.get_close_matches(cmd_name, COMMANDS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"available: {', '.join(COMMANDS)}"
            raise click.UsageError(f"unknown command {cmd_name!r}; {hint}")
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        try:
            command: click.Command = getattr(import_module(module), attribute)
        except ModuleNotFoundError as error:
            raise _missing(error) from None
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SnapshotError as error:
            raise click.ClickException(" ".join(str(error).split())) from error
        except ModuleNotFoundError as error:
            raise _missing(error) from None


def _missing(error: ModuleNotFoundError) -> Exception:
    if (error.name or "").partition(".")[0] not in LIBRARIES:
        return error
    return click.ClickException(
        f"snapshots need {error.name}; install it with: {_how_to_install()}"
    )


def _how_to_install() -> str:
    checkout = Path(__file__).parents[3]
    if (checkout / "pyproject.toml").is_file():
        return f"make -C {shlex.quote(str(checkout))} setup-dev"
    # A bare `pip` may belong to another Python.
    return f"{shlex.quote(sys.executable)} -m pip install 'fumehood[snapshots]'"


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
def snapshot() -> None:
    """Build, search and compare offline document sets.

    \b
    Examples:
      fumehood snapshot python-doc docs              Python's documentation as a snapshot
      fumehood snapshot search docs "walrus operator"
      fumehood snapshot build corpus --jsonl corpus.jsonl
    """

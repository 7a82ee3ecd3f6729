"""Shows the progress of a build: a bar on a terminal, else one line per stage."""

from __future__ import annotations

import json
from typing import Any

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    click.echo(json.dumps(value, indent=2))


def plain(text: object) -> str:
    """Return text as one line without control, format and other invisible characters.

    Titles, addresses and file names come from pages and files of other users.
    """
    joined = " ".join(str(text).split())
    return "".join(character if character.isprintable() else " " for character in joined)


class ShownProgress:
    """Shows the stages of a build on standard error. A context manager and a ``Progress``."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        self._terminal = console.is_terminal
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._stages: dict[str, TaskID | None] = {}

    def __enter__(self) -> ShownProgress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Report the progress of a stage."""
        if stage not in self._stages:
            self._stages[stage] = self._bar.add_task(stage, total=total) if self._terminal else None
            if not self._terminal:
                click.echo(stage, err=True)
        task = self._stages[stage]
        if task is not None:
            self._bar.update(task, completed=done, total=total)

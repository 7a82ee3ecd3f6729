"""Recorded episodes of ToolMisuseBench's reference implementation, and inputs that crash it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fumehood.benchmarks.toolmisuse.records import TaskRecord
from fumehood.benchmarks.toolmisuse.tasks import case_of
from fumehood.core.errors import InputError, SpecError
from fumehood.core.task import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedEpisode:
    """What to play, and what the reference implementation did."""

    name: str
    task: Mapping[str, Any]
    """The task record as it was in a file."""
    moves: Sequence[Mapping[str, Any]]
    """The calls, each with ``tool_name`` and ``args``; with ``agent``, those that it made."""
    agent: str | None
    """Built-in agent that made the calls; None for a list of calls."""
    expect: Mapping[str, Any] | None
    """What happened; None for an input on which the reference failed."""

    def case(self) -> Case:
        """Return the task and its gold.

        Raises:
            SpecError: the record is not a task, or no world serves it.
        """
        try:
            return case_of(TaskRecord.model_validate(self.task))
        except ValidationError as error:
            first = error.errors()[0]
            raise SpecError(".".join(str(step) for step in first["loc"]), first["msg"]) from None


def read_recorded(path: Path) -> Iterator[RecordedEpisode]:
    """Yield the recorded episodes of one file of JSON lines.

    Raises:
        InputError: the file or a line of it cannot be read.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield _from_json(json.loads(line))
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                raise InputError(f"{path}:{number} is no recorded episode: {error!r}") from None


def _from_json(record: Mapping[str, Any]) -> RecordedEpisode:
    expect = record.get("expect")
    # Two recorded inputs hold numbers that overflow when they are parsed, so they are stored as
    # text.
    task = record["task"] if "task" in record else json.loads(record["task_text"])
    actions = record.get("actions", (expect or {}).get("actions"))
    moves = json.loads(record["actions_text"]) if actions is None else actions
    if not isinstance(moves, list) or not all(isinstance(move, dict) for move in moves):
        raise TypeError("actions are a list of objects")
    return RecordedEpisode(
        name=record["id"], task=task, moves=moves, agent=record.get("agent"), expect=expect
    )

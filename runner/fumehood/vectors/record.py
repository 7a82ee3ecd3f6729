"""One recorded episode, or one input on which the recorded system failed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fumehood.benchmarks.toolmisuse.record import TaskRecord
from fumehood.benchmarks.toolmisuse.task import case_of
from fumehood.core.errors import InputError, SpecError
from fumehood.core.task import Case

Move = Mapping[str, Any]
"""A call as recorded: ``tool_name`` and ``args``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
    """What to play, and what was seen when it was played."""

    vector_id: str
    task: Mapping[str, Any]
    """The task record as it stood in a file."""
    moves: Sequence[Move]
    """The calls on offer; those an agent made, where ``agent`` is set."""
    agent: str | None
    """Built-in agent that made the calls by itself."""
    expect: Mapping[str, Any] | None
    """What was seen; None for an input on which the recorded system failed."""

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


def read_vectors(path: Path) -> Iterator[Vector]:
    """Yield the vectors of one file of JSON lines.

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
                yield _vector(json.loads(line))
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                raise InputError(f"{path}:{number} is not a vector: {error!r}") from None


def _vector(record: Mapping[str, Any]) -> Vector:
    expect = record.get("expect")
    # Two recorded inputs hold numbers that overflow when they are parsed, so they stand as text.
    task = record["task"] if "task" in record else json.loads(record["task_text"])
    given = record.get("actions", (expect or {}).get("actions"))
    moves = json.loads(record["actions_text"]) if given is None else given
    if not isinstance(moves, list) or not all(isinstance(move, dict) for move in moves):
        raise TypeError("actions are a list of objects")
    return Vector(
        vector_id=record["id"], task=task, moves=moves, agent=record.get("agent"), expect=expect
    )

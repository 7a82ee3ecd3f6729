"""BFCL's files: entries and their right answers, by category."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fumehood.benchmarks.bfcl.tool_docs import package_folder


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a category."""

    value: dict[str, Any]
    answer: Any
    """Its ground truth; None for categories in which nothing is to be called, or anything is."""


def entries(category: str) -> Iterator[Entry]:
    """Yield a category's entries in their order.

    Raises:
        InputError: BFCL is not installed.
    """
    data = package_folder() / "data"
    answers = data / "possible_answer" / f"BFCL_v4_{category}.json"
    known = (
        {each["id"]: each["ground_truth"] for each in _lines(answers)} if answers.exists() else {}
    )
    for value in _lines(data / f"BFCL_v4_{category}.json"):
        yield Entry(value, known.get(value["id"]))


def chats(scenario: str) -> list[dict[str, Any]]:
    """Return the conversations that come before the questions of a scenario of memory, in their order."""
    return list(
        _lines(package_folder() / "data" / "memory_prereq_conversation" / f"memory_{scenario}.json")
    )


def words(messages: list[dict[str, str]]) -> str:
    """Return the messages of one turn as one text."""
    return "\n\n".join(message["content"] for message in messages)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)

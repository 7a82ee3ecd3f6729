"""Converts the arguments of a call as AgentDojo does before it executes the call."""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Mapping
from typing import Any


def with_lists(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with each text that is a Python list replaced by the list.

    Source: ``ToolsExecutor.query`` of AgentDojo. Models often write lists as text.
    """
    return {name: _list_or_value(value) for name, value in arguments.items()}


def _list_or_value(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        parsed = literal_eval(value)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return value
    return parsed if isinstance(parsed, list) else value

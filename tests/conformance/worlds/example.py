"""Example state and calls of a world, for the conformance suite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fumehood.core.tools import ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A state to live in, and calls that fit the tools."""

    state: Mapping[str, Any]
    documents: tuple[Mapping[str, str], ...] = ()
    """What lies around the world, as a snapshot; nothing does where there is none."""
    reading: tuple[ToolCall, ...]
    """Answered, and nothing changes."""
    changing: tuple[ToolCall, ...] = ()
    """Answered, and something changes, one after the other."""
    refused: tuple[ToolCall, ...]
    """The world says no, and nothing changes."""
    unlivable: tuple[Mapping[str, Any], ...]
    """States that the world says it cannot live in."""
    needs: tuple[str, ...] = ()
    """Packages of others that it lives on."""
    on_mariadb: bool = False
    """Whether it lives on a server, too."""


def call(tool: str, /, **arguments: Any) -> ToolCall:
    return ToolCall(tool, arguments)

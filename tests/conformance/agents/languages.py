"""The conformance agents: which there are, what each is made of, and what its way to the seat cannot say."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """One conformance agent."""

    name: str
    way: str
    """How it reaches its seat."""
    lay_out: Callable[[Path], object]
    """Fills a folder that boxes see as ``/agent``; may compile."""
    command: tuple[str, ...]
    """Run in the box; ``python3`` is the box's own."""
    needs: tuple[str, ...] = ()
    """Programs of this machine, without which it is left out."""
    lacks: Mapping[str, str] = field(default_factory=dict)
    """Vector → why this way cannot do what it asks."""


def _copied(folder: str) -> Callable[[Path], object]:
    return lambda target: shutil.copytree(FOLDER / folder, target, dirs_exist_ok=True)


LANGUAGES = (
    Language(
        name="Python",
        way="SDK, gRPC stream",
        lay_out=_copied("python"),
        command=("python3", "/agent/agent.py"),
    ),
    Language(
        name="Python asyncio",
        way="SDK, gRPC calls",
        lay_out=_copied("python"),
        command=("python3", "/agent/asyncio_agent.py"),
    ),
    Language(
        name="shell, curl",
        way="HTTP, Connect JSON",
        lay_out=_copied("shell"),
        command=("sh", "/agent/curl.sh"),
        needs=("curl", "jq"),
    ),
    Language(
        name="shell",
        way="the command, HTTP",
        lay_out=_copied("shell"),
        command=("sh", "/agent/command.sh"),
        needs=("jq",),
    ),
)
"""Every language there is; a new one is a folder and an entry."""

"""What to run for an agent that the SDK runs: the same words on every engine."""

from __future__ import annotations

from pathlib import Path

from runner.core.errors import InputError
from runner.engines.engine import AGENT_FOLDER, AgentKind, AgentSource, Mount

ENVIRONMENT = {"HOME": "/tmp", "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1"}
"""Unbuffered, so that what an agent printed is there when it had to be stopped."""


def sdk_command(source: AgentSource) -> tuple[str, ...]:
    """Return the command that runs a built-in agent or a ``module:Class``."""
    name = f"builtin:{source.name}" if source.kind is AgentKind.BUILTIN else source.name
    return ("python3", "-m", "glovebox_agent", "run", name)


def agent_mounts(source: AgentSource) -> tuple[Mount, ...]:
    """Return what the box must show of the host for ``source``: the folder that holds its module, or nothing.

    Raises:
        InputError: there is no such module where the command is run.
    """
    if source.kind is not AgentKind.MODULE:
        return ()
    return (Mount(_folder_of(source.name), AGENT_FOLDER),)


def _folder_of(name: str) -> Path:
    module, _, attribute = name.partition(":")
    parts = module.split(".")
    if not attribute.isidentifier() or not all(part.isidentifier() for part in parts):
        raise InputError(f"{name!r} does not name an agent; write module:Class")
    folder = Path.cwd()
    if not (folder / f"{parts[0]}.py").is_file() and not (folder / parts[0]).is_dir():
        raise InputError(f"there is no module {parts[0]!r} in {folder}; run the command where it lies")
    return folder

"""What to run for an agent that the SDK runs: the same words on every engine."""

from __future__ import annotations

from pathlib import Path

from fumehood.core.errors import InputError
from fumehood.engines.agent_module import require_name
from fumehood.engines.engine import AGENT_FOLDER, AgentKind, AgentSource, Mount

ENVIRONMENT = {"HOME": "/tmp", "LANG": "C.UTF-8"}
"""Not PYTHONUNBUFFERED: Python would lose what a pipe does not take at once, which happens under gVisor."""

_READ_FILE = 0o004
_READ_FOLDER = 0o005


def sdk_command(source: AgentSource) -> tuple[str, ...]:
    """Return the command that runs a built-in agent or a ``module:Class``."""
    name = f"builtin:{source.name}" if source.kind is AgentKind.BUILTIN else source.name
    return ("python3", "-m", "fumehood_agent", "run", name)


def agent_mounts(source: AgentSource, *, for_nobody: bool) -> tuple[Mount, ...]:
    """Return what the box must show of the host for ``source``: its module's file, or its package's folder.

    Nothing beside it: where people run this command, answers and earlier runs lie about.

    Args:
        source: the agent.
        for_nobody: the box has no more rights on the host than any user, so it must be allowed to read.

    Raises:
        InputError: there is no such module where the command is run, its text binds no such name, or the
            box could not read it.
    """
    if source.kind is not AgentKind.MODULE:
        return ()
    module = _find_module(source.name)
    if for_nobody:
        _require_readable(module)
    return (Mount(module, f"{AGENT_FOLDER}/{module.name}"),)


def _find_module(name: str) -> Path:
    module, _, attribute = name.partition(":")
    parts = module.split(".")
    if not attribute.isidentifier() or not all(part.isidentifier() for part in parts):
        raise InputError(f"{name!r} does not name an agent; write module:Class")
    folder = Path.cwd()
    for path in (folder / parts[0], folder / f"{parts[0]}.py"):
        if path.exists():
            require_name(folder, module, attribute)
            return path
    raise InputError(f"there is no module {parts[0]!r} in {folder}; run the command where it lies")


def _require_readable(path: Path) -> None:
    needed = _READ_FOLDER if path.is_dir() else _READ_FILE
    if path.stat().st_mode & needed != needed:
        raise InputError(f"the box cannot read {path}; let others read it (chmod -R o+rX)")

"""What the Dockerfile of an agent's folder states, read without a daemon."""

from __future__ import annotations

import re
from pathlib import Path

WORKSPACE_ARGUMENT = "FUMEHOOD_WORKSPACE"
"""Argument of a Dockerfile with the image of the task, on which an agent inside a workspace is
built."""
_FROM_WORKSPACE = re.compile(
    rf"^\s*FROM\s+\$(?:{WORKSPACE_ARGUMENT}\b|\{{{WORKSPACE_ARGUMENT}\}})",
    re.MULTILINE | re.IGNORECASE,
)


def starts_from_workspace(folder: Path) -> bool:
    """Return whether the agent of a folder runs inside the workspace of its task."""
    try:
        text = (folder / "Dockerfile").read_text("utf-8", "replace")
    except OSError:
        return False
    return _FROM_WORKSPACE.search(text) is not None

"""One text of several voices, in which nobody can speak for another."""

from __future__ import annotations

LATER = "\n    "
"""Before every line of a voice but its first: a line that begins at the margin is somebody else's."""


def one_voice(text: str) -> str:
    """Return what one says, so that no line of it looks like the beginning of what another says."""
    return LATER.join(text.splitlines())

"""The reason why a task cannot be played."""

from __future__ import annotations

from collections.abc import Mapping


class Unsupported(Exception):
    """A task needs something that this project does not offer; the text names it."""


def checked_variables(variables: Mapping[str, str], place: str) -> dict[str, str]:
    """Return variables of a box.

    Args:
        variables: by name.
        place: where the task states them, for messages.

    Raises:
        Unsupported: the kernel cannot pass one of them to a program; see environ(7).
    """
    for name, value in variables.items():
        if not name or "=" in name or "\0" in name + value:
            raise Unsupported(f"{place}: the variable {name!r}, which no program can get")
    return dict(variables)

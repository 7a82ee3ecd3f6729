"""The platforms on which boxes start."""

from __future__ import annotations

import platform


def platform_problem(system: str | None = None) -> str:
    """Return why no box can start on a platform, with the remedy; empty if boxes can.

    Args:
        system: as ``platform.system()`` returns it; by default this machine's.
    """
    system = system or platform.system()
    if system == "Linux":
        return ""
    return (
        f"boxes need Linux, not {system}: run fumehood in a Linux virtual machine, or use "
        "--engine inline for built-in agents"
    )

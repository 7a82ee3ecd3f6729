"""How to get a library that not everybody installs. Knows which extras there are no more than who asks."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

_CHECKOUT = Path(__file__).parents[3]


def how_to_install(extra: str, checkout: Path = _CHECKOUT) -> str:
    """Return the command that installs an extra of ours for the interpreter that is running.

    Args:
        extra: as in ``pyproject.toml``, such as ``report``.
        checkout: folder that holds the package; it is a checkout where it also holds ``pyproject.toml``.
    """
    if (checkout / "pyproject.toml").is_file():
        where = "" if Path.cwd() == checkout else f"-C {shlex.quote(str(checkout))} "
        return f"make {where}setup-dev"
    # A bare `pip` may be another Python's, which Debian keeps from installing anything.
    return f"{shlex.quote(sys.executable)} -m pip install 'fumehood[{extra}]'"

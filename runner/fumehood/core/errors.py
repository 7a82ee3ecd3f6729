"""What goes wrong on our side of the wall, by who must mend it.

::

    FumehoodError
    ├── InputError      the user: a task, a file, a flag; exit status 2
    │   └── SpecError   … a field of a task or an episode, named
    └── InfraError      the machinery: a daemon, a socket, a process; ends an episode as ``infra``

What a world says to an agent is never one of these: it is a returned ``Failure``.
"""

from __future__ import annotations

import difflib
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path


class FumehoodError(Exception):
    """Anything this project raises on purpose."""


class InputError(FumehoodError):
    """Something the user gave cannot be used; the message is one line that says what to do."""


class SpecError(InputError):
    """A field of a task or an episode cannot be used."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        """Where, such as ``fault_plan[0].payload.timeout_ms``."""
        self.reason = message


class InfraError(FumehoodError):
    """The machinery failed; says nothing about the agent and is never scored."""


_CHECKOUT = Path(__file__).parents[3]


def nearest(word: str, known: Sequence[str]) -> str:
    """Return a hint for an unknown word: the most similar known word, or all of them."""
    matches = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {matches[0]!r}?" if matches else f"there are: {', '.join(known)}"


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

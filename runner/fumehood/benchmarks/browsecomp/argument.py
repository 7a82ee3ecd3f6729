"""``PATH[:snapshot=FOLDER][:judge=NAME]``: what stands behind ``browsecomp:``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fumehood.core.errors import InputError


@dataclass(frozen=True, slots=True)
class Argument:
    """The parts of the argument."""

    path: Path
    snapshot: Path | None
    judge: str | None
    """None means that answers stay ungraded."""


def read_argument(name: str, text: str) -> Argument:
    """Return the parts.

    Raises:
        InputError: there is no path, or an option that means nothing.
    """
    path, *options = text.split(":")
    told = dict(option.partition("=")[::2] for option in options)
    if not path:
        raise InputError(f"{name} needs your copy: {name}:PATH[:snapshot=FOLDER][:judge=NAME]")
    unknown = set(told) - {"snapshot", "judge"}
    if unknown or not all(told.values()):
        raise InputError(f"{name}:{text}: after the path may stand snapshot=FOLDER and judge=NAME")
    if not Path(path).exists():
        raise InputError(f"there is no file or folder {path}")
    return Argument(
        Path(path), Path(told["snapshot"]) if "snapshot" in told else None, told.get("judge")
    )

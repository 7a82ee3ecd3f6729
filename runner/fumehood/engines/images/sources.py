"""Finds the sources that images are built from, in a checkout or in the installed package."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from fumehood.core.errors import InfraError, InputError

_PACKAGE = Path(__file__).parents[2]
_CHECKOUT = _PACKAGE.parents[1]
_PACKAGED = _PACKAGE / "_data"
"""The wheel puts the folders here; see ``force-include`` in ``pyproject.toml``."""


def is_checkout() -> bool:
    """Return whether this code runs from a checkout of the project."""
    return not _PACKAGED.is_dir()


def builder() -> str:
    """Return the label value of images that this checkout or installation builds."""
    return str(_CHECKOUT if is_checkout() else _PACKAGE)


def source_folder(name: str) -> Path:
    """Return a folder of sources by its path in a checkout, such as ``sandbox_images/helper``.

    Raises:
        InputError: the installation lacks the folder.
    """
    folder = (_CHECKOUT if is_checkout() else _PACKAGED) / name
    if not folder.is_dir():
        raise InputError(f"{folder} is missing; install fumehood again")
    return folder


def read_source(folder: str, name: str) -> str:
    """Return the text of a file of :func:`source_folder`.

    Raises:
        InputError: the installation lacks the file.
    """
    path = source_folder(folder) / name
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; install fumehood again") from error


def cache_folder(name: str) -> Path:
    """Make and return a folder for build results in the user's cache (``$XDG_CACHE_HOME``).

    Raises:
        InfraError: the folder cannot be made, or other users can write it.
    """
    root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if root.startswith("~"):  # There is no HOME and no entry in the user database.
        raise InfraError("this user has no home folder: set XDG_CACHE_HOME to a writable folder")
    folder = Path(root) / "fumehood" / name
    try:
        for made in (folder.parent, folder):
            # The default of parents would depend on the umask.
            made.parent.mkdir(parents=True, exist_ok=True)
            made.mkdir(exist_ok=True, mode=0o755)
            _refuse_other_writers(made)
    except OSError as error:
        raise InfraError(
            f"cannot make {folder}: {error.strerror}; set XDG_CACHE_HOME to a writable folder"
        ) from error
    return folder


def _refuse_other_writers(folder: Path) -> None:
    """Raise if another user can replace build results, which boxes and npm execute."""
    status = folder.lstat()
    if (
        not stat.S_ISDIR(status.st_mode)
        or status.st_uid not in (0, os.geteuid())
        or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    ):
        raise InfraError(
            f"{folder} must be a folder that only this user can write; remove it, or set "
            "XDG_CACHE_HOME to another folder"
        )

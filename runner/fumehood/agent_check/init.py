"""Working agents to begin from, a folder a language."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from fumehood.core.errors import InputError

TEMPLATES_FOLDER = Path(__file__).parent / "templates"


def languages() -> tuple[str, ...]:
    """Return the languages that there is a template for."""
    return tuple(sorted(folder.name for folder in TEMPLATES_FOLDER.iterdir() if folder.is_dir()))


def lay_out(language: str, folder: Path) -> list[str]:
    """Copy a template, and what every language begins with.

    Args:
        language: one of :func:`languages`.
        folder: to be made; an empty one will do.

    Returns:
        The names of its files, in order.

    Raises:
        InputError: the folder holds something, or cannot be written.
    """
    try:
        if folder.exists() and any(folder.iterdir()):
            raise InputError(f"{folder} is not empty: choose a new folder")
        leave_out = shutil.ignore_patterns("__pycache__")
        shutil.copytree(TEMPLATES_FOLDER / language, folder, dirs_exist_ok=True, ignore=leave_out)
        for file in TEMPLATES_FOLDER.iterdir():
            if file.is_file():
                shutil.copy(file, folder)
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror or error}") from None
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def next_commands(language: str) -> list[str]:
    """Return what to run in the new folder, as its README says."""
    readme = (TEMPLATES_FOLDER / language / "README.md").read_text("utf-8")
    return re.findall(r"^\$ (.+)$", readme, re.MULTILINE)

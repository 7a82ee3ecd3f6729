"""Creates a new agent from a template, one per language."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from fumehood.core.errors import InputError

TEMPLATES_FOLDER = Path(__file__).parent / "templates"


def languages() -> tuple[str, ...]:
    """Return the languages with a template."""
    return tuple(sorted(folder.name for folder in TEMPLATES_FOLDER.iterdir() if folder.is_dir()))


def create_agent(language: str, folder: Path) -> list[str]:
    """Copy a template and the files that all languages share, and return their sorted names.

    Raises:
        InputError: the folder is not empty or cannot be written.
    """
    try:
        if folder.exists() and any(folder.iterdir()):
            raise InputError(f"{folder} is not empty: choose a new folder")
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(TEMPLATES_FOLDER / language, folder, dirs_exist_ok=True, ignore=ignore)
        for file in TEMPLATES_FOLDER.iterdir():
            if file.is_file():
                shutil.copy(file, folder)
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror or error}") from None
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def next_commands(language: str) -> list[str]:
    """Return the commands in the README of a template."""
    readme = (TEMPLATES_FOLDER / language / "README.md").read_text("utf-8")
    return re.findall(r"^\$ (.+)$", readme, re.MULTILINE)

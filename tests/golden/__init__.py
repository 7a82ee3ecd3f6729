"""Where recorded data lives: the full files beside the project, small samples of them inside it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_INSIDE_THE_PROJECT = Path(__file__).resolve().parent

FOLDER_VARIABLE = "FUMEHOOD_GOLDEN"
_BESIDE_THE_PROJECT = _INSIDE_THE_PROJECT.parent.parent.parent / "shared" / "golden"


def golden_file(name: str) -> Path:
    """Return a full file of recorded data, such as ``"toolmisusebench/agents.jsonl"``.

    Skips the calling test where the file is absent, and fails it when ``CI`` is set: there, nothing may go
    unproven for want of data.
    """
    folder = Path(os.environ.get(FOLDER_VARIABLE) or _BESIDE_THE_PROJECT)
    path = folder / name
    if path.exists():
        return path
    reason = f"no recorded data at {path}; set {FOLDER_VARIABLE} to the folder that holds {name}"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def golden_sample(name: str) -> Path:
    """Return a sample that is part of the project, such as ``"toolmisusebench/agents.sample.jsonl"``."""
    return _INSIDE_THE_PROJECT / name

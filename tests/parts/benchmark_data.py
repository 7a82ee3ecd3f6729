"""Where the data of public benchmarks lies, none of which is part of this project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_PROJECT = Path(__file__).resolve().parent.parent.parent
SAMPLES = _PROJECT / "tests" / "samples"
"""Records of our own in the formats of others."""
FOLDER_VARIABLE = "FUMEHOOD_BENCHMARK_DATA"
_BESIDE_THE_PROJECT = _PROJECT.parent / "shared" / "data"


def data_folder() -> Path:
    """Return the folder of public data, there or not."""
    return Path(os.environ.get(FOLDER_VARIABLE) or _BESIDE_THE_PROJECT)


def benchmark_data(name: str) -> Path:
    """Return a file or folder of public data, such as ``"agentbench-dbbench/dev.jsonl"``.

    Skips the calling test where it is absent, and fails it when ``CI`` is set.
    """
    path = data_folder() / name
    if path.exists():
        return path
    reason = f"no data of that benchmark at {path}; set {FOLDER_VARIABLE} to the folder that holds {name}"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)

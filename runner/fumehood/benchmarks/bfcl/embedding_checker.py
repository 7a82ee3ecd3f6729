"""Embeds texts with a user's model, in a separate process that only computes."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

from fumehood.benchmarks.bfcl.sentence_model import SentenceModel, weights_digest

INSTALL = "pip install 'fumehood[bfcl]'"
_models: dict[tuple[str, str], SentenceModel] = {}


def load() -> None:
    """Import NumPy; it must start no threads, which a question's process may not have."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    import_module("numpy")


def prepare(question: dict[str, Any]) -> None:
    """Read the model of a question once.

    Raises:
        ValueError: Its weights changed since the tasks were loaded.
    """
    key = (question["folder"], question["sha256"])
    if key not in _models:
        if weights_digest(Path(key[0])) != key[1]:
            raise ValueError(f"the weights in {key[0]} changed")
        _models[key] = SentenceModel(Path(key[0]))


def check(question: dict[str, Any]) -> dict[str, Any]:
    """Return the ``vector`` of the ``text``."""
    model = _models[question["folder"], question["sha256"]]
    return {"vector": model.embed(question["text"]).tolist()}

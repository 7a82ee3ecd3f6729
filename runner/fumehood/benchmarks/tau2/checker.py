"""The search of τ²-bench's bank through its documents. Runs in a process of its own alone: expressions are
the agent's, and some take for ever.

The package's own search over the package's documents, or over those of a folder of the user's.
"""

from __future__ import annotations

import gzip
import json
import re
import signal
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

INSTALL = "pip install --no-deps 'inspect-evals==0.26.0'"
SECONDS = 3
"""Of a search, which holds up all others."""
_ROOT = "inspect_evals.tau2"
_documents: dict[str, Any] = {}


def load() -> None:
    """Import what searches, without all that the package would import beside it, and read its documents."""
    pydantic = import_module("pydantic")
    found = find_spec("inspect_evals")
    if found is None or not found.submodule_search_locations:
        raise ImportError("inspect_evals", name="inspect_evals")
    package = Path(found.submodule_search_locations[0])
    for name in ("inspect_evals", _ROOT, f"{_ROOT}.banking"):
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = [str(package.joinpath(*name.split(".")[1:]))]
    for name in (f"{_ROOT}.environment", f"{_ROOT}.environment.db"):
        sys.modules[name] = ModuleType(name)
    sys.modules[f"{_ROOT}.environment.db"].DB = pydantic.BaseModel  # type: ignore[attr-defined]
    packed = package / "tau2" / "data" / "domains" / "banking_knowledge" / "documents.json.gz"
    _keep("", json.loads(gzip.decompress(packed.read_bytes())))
    re.compile("(?i)a|b")


def prepare(question: dict[str, Any]) -> None:
    """Read the documents of a folder, once; those of the package where it has none."""
    folder = question["folder"]
    if folder not in _documents:
        paths = sorted(Path(folder, "documents").glob("*.json"))
        if paths:
            _keep(folder, [json.loads(path.read_bytes()) for path in paths])
        else:
            _documents[folder] = _documents[""]


def check(question: dict[str, Any]) -> dict[str, Any]:
    """Search; whatever takes longer ends this process."""
    signal.alarm(SECONDS)
    return {"found": _documents[question["folder"]].grep(question["pattern"])}


def _keep(folder: str, documents: list[dict[str, Any]]) -> None:
    model = import_module(f"{_ROOT}.banking.data_model")
    by_id = {each["id"]: model.Document(**each) for each in documents}
    _documents[folder] = model.KnowledgeBase(documents=by_id)

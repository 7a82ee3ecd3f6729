"""Searches the documents of τ²-bench's bank, and calls a checkout's tools, in a separate process.

Agents send regular expressions, and some do not terminate in reasonable time. The search is the
package's own, over the package's documents or those of a user's folder.
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

from fumehood.benchmarks.tau2 import checkout

INSTALL = "pip install --no-deps 'inspect-evals==0.26.0'"
SEARCH_TIMEOUT_S = 3
"""Other searches wait until one has ended."""
_ROOT = "inspect_evals.tau2"
_documents: dict[str, Any] = {}


def load() -> None:
    """Import the search without the rest of the package, and read the package's documents."""
    pydantic = import_module("pydantic")
    spec = find_spec("inspect_evals")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("inspect_evals", name="inspect_evals")
    package = Path(spec.submodule_search_locations[0])
    for name in ("inspect_evals", _ROOT, f"{_ROOT}.banking"):
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = [str(package.joinpath(*name.split(".")[1:]))]
    for name in (f"{_ROOT}.environment", f"{_ROOT}.environment.db"):
        sys.modules[name] = ModuleType(name)
    sys.modules[f"{_ROOT}.environment.db"].DB = pydantic.BaseModel  # type: ignore[attr-defined]
    packed = package / "tau2" / "data" / "domains" / "banking_knowledge" / "documents.json.gz"
    _store_documents("", json.loads(gzip.decompress(packed.read_bytes())))
    re.compile("(?i)a|b")
    checkout.load()


def prepare(places: dict[str, Any]) -> None:
    """Read the documents of a folder once; without documents, use those of the package."""
    if places.get("checkout"):
        checkout.prepare(places)
    folder = places["folder"]
    if folder not in _documents:
        paths = sorted(Path(folder, "documents").glob("*.json"))
        if paths:
            _store_documents(folder, [json.loads(path.read_bytes()) for path in paths])
        else:
            _documents[folder] = _documents[""]


def check(question: dict[str, Any]) -> dict[str, Any]:
    """Search or call; the alarm ends this process when a search takes too long."""
    if "op" in question:
        return checkout.check(question)
    signal.alarm(SEARCH_TIMEOUT_S)
    return {"matches": _documents[question["folder"]].grep(question["pattern"])}


def _store_documents(folder: str, documents: list[dict[str, Any]]) -> None:
    model = import_module(f"{_ROOT}.banking.data_model")
    by_id = {item["id"]: model.Document(**item) for item in documents}
    _documents[folder] = model.KnowledgeBase(documents=by_id)

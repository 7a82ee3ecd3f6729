"""Runs the tools of a checkout of τ²-bench. Only the process of ``checker`` imports a checkout.

A call receives the changes to the database and the other state of the tools, and returns the new
ones, so that no process keeps the state of an episode.
"""

from __future__ import annotations

import gzip
import json
import sys
from dataclasses import dataclass
from datetime import date
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel

from fumehood.benchmarks.tau2.database import DATABASES, Database, WholeDatabase, read_bytes
from fumehood.benchmarks.tau2.package import data_folder, tool_spec
from fumehood.supervised.late_imports import import_late

SOURCE = Path("src", "tau2")
"""Folder of the package in a checkout."""
CLASSES = {
    "airline": ("airline", "FlightDB", ("AirlineTools",)),
    "banking": (
        "banking_knowledge",
        "TransactionalDB",
        ("KnowledgeTools", "KnowledgeUserTools"),
    ),
    "retail": ("retail", "RetailDB", ("RetailTools",)),
}
"""Domain → its folder, the class of its database, and the classes of the agent's and the user's
tools."""
SIDES = ("agent", "user")
_REPLACED = ("addict", "deepdiff", "docstring_parser", "dotenv", "loguru", "toml", "yaml")
"""Packages that the tools import and do not need."""
_IMPORTED_BY_CHECKOUTS = (
    *("abc", "copy", "datetime", "enum", "glob", "hashlib", "importlib.metadata", "inspect"),
    *("operator", "re", "subprocess", "textwrap", "typing_extensions", "uuid"),
)
_NOT_KEPT = ("db", "_read_log_allowlist")
"""Attributes of tools that are not state."""


@dataclass(frozen=True, slots=True)
class Company:
    """The imported classes of a domain."""

    database: Any
    tools: dict[str, Any]
    """By side."""


_companies: dict[tuple[str, str], Company] = {}
_databases: dict[tuple[str, str, str], Database] = {}


def load() -> None:
    """Import what checkouts import while this process can read it."""
    import_late(*_IMPORTED_BY_CHECKOUTS)
    for name in _REPLACED:
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name])["__getattr__"] = _absent
    # pydantic imports further modules when the first model is used.
    type("First", (BaseModel,), {"__annotations__": {"held": dict[str, Any]}})(held={})


def prepare(places: dict[str, Any]) -> None:
    """Import a checkout's domain once, and read its database once."""
    name = places["domain"]
    place = (places["checkout"], name)
    if place not in _companies:
        _companies[place] = _import(Path(places["checkout"]), name)
    key = (*place, places["folder"])
    if key not in _databases:
        raw = read_bytes(Path(places["folder"] or data_folder(name)))
        database = Database(gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw)
        if DATABASES[name] is WholeDatabase:
            kind = _companies[place].database
            database.tables = kind.model_validate(database.tables).model_dump(mode="json")
        _databases[key] = database


def check(question: dict[str, Any]) -> dict[str, Any]:
    """Describe the tools of each side (op ``describe``), or call one (op ``call``)."""
    name = question["domain"]
    company = _companies[question["checkout"], name]
    published = _databases[question["checkout"], name, question["folder"]]
    database: Any = DATABASES[name](company.database, published, question.get("changes", ()))
    tools = {side: kind(database.database) for side, kind in company.tools.items()}
    if question["op"] == "describe":
        return {side: _described(toolkit) for side, toolkit in tools.items()}
    for side, attributes in question["kept"].items():
        for key, value in attributes.items():
            setattr(tools[side], key, value)
    if hasattr(tools["agent"], "set_read_log_allowlist"):
        tools["agent"].set_read_log_allowlist(set(question["logged_reads"]))
    reply: dict[str, Any] = {}
    try:
        method = getattr(tools[question["side"]], question["name"])
        reply["text"] = original_text(method(**question["arguments"]))
    except Exception as error:  # The original catches every exception in the same way.
        reply["error"] = str(error) or repr(error)
    kept = {
        side: {key: value for key, value in vars(toolkit).items() if key not in _NOT_KEPT}
        for side, toolkit in tools.items()
    }
    return {**reply, "changes": list(database.changes()), "kept": json.loads(json.dumps(kept))}


def original_text(result: Any) -> str:
    """Return a tool's result as the original shows it. Source: ``Environment.to_json_str``."""
    return result if isinstance(result, str) else json.dumps(_with_texts(result), default=str)


def _with_texts(value: Any) -> Any:
    """Return a value with numbers as texts, except in objects."""
    match value:
        case BaseModel():
            return value.model_dump()
        case int() | float():
            return str(value)
        case date():
            return value.isoformat()
        case list() | tuple():
            return [_with_texts(item) for item in value]
        case dict():
            return {key: _with_texts(item) for key, item in value.items()}
        case _:
            return value


def _import(checkout: Path, name: str) -> Company:
    folder, database, tools = CLASSES[name]
    for module in [module for module in sys.modules if module.split(".")[0] == "tau2"]:
        del sys.modules[module]
    # Without the code of these packages, which imports agents, models and search engines.
    for module in ("tau2", "tau2.environment", "tau2.domains", f"tau2.domains.{folder}"):
        sys.modules[module] = ModuleType(module)
        sys.modules[module].__path__ = [
            str(checkout.joinpath(SOURCE, *module.split(".")[1:])),
        ]
    data_model, methods = (
        import_module(f"tau2.domains.{folder}.{module}") for module in ("data_model", "tools")
    )
    kinds = {side: getattr(methods, kind) for side, kind in zip(SIDES, tools, strict=False)}
    return Company(getattr(data_model, database), kinds)


def _described(toolkit: Any) -> list[dict[str, Any]]:
    """Return the tools of a side, without those that the agent discovers."""
    mark = sys.modules["tau2.environment.toolkit"].DISCOVERABLE_ATTR
    specs = [
        tool_spec(name, method)
        for name, method in toolkit.tools.items()
        if not getattr(method, mark, False)
    ]
    return [
        {"name": spec.name, "parameters": spec.parameters, "description": spec.description}
        for spec in specs
    ]


class _Absent:
    """A value of a replaced package: every attribute and every call gives it again."""

    def __getattr__(self, name: str) -> _Absent:
        return self

    def __call__(self, *_: Any, **__: Any) -> _Absent:
        return self


def _absent(name: str) -> _Absent:
    if name.startswith("__"):
        raise AttributeError(name)
    return _Absent()

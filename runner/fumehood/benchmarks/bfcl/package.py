"""Reads the data of the package bfcl-eval without importing the package.

The data are function documents, converted to tools with JSON Schema, and the entries of each
category.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.core.tools import ToolSpec

INSTALL = "pip install 'fumehood[bfcl]' && pip install --no-deps 'bfcl-eval==2026.3.23'"
"""Without its dependencies, which are the clients of many model providers. None is used here."""
DOCUMENTS = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TwitterAPI": "posting_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "VehicleControlAPI": "vehicle_control",
}
"""Simulator class → module and document. Source:
``bfcl_eval.constants.executable_backend_config``."""
MEMORIES = {"MemoryAPI_kv": "memory_kv", "MemoryAPI_rec_sum": "memory_rec_sum"}
"""The same for memory classes."""
VECTOR = {"MemoryAPI_vector": "memory_vector"}
"""The same for the memory with embeddings."""
WEB = {"WebSearchAPI": "web_search"}
"""The same for the class of web search."""
_TYPES = {
    "dict": "object",
    "object": "object",
    "HashMap": "object",
    "Hashtable": "object",
    "array": "array",
    "list": "array",
    "tuple": "array",
    "Array": "array",
    "ArrayList": "array",
    "Queue": "array",
    "Stack": "array",
    "integer": "integer",
    "byte": "integer",
    "short": "integer",
    "long": "integer",
    "Bigint": "integer",
    "float": "number",
    "double": "number",
    "number": "number",
    "boolean": "boolean",
    "bool": "boolean",
}
"""Source: ``bfcl_eval.constants.type_mappings``. All other types are strings."""


def package_folder(*required: str) -> Path:
    """Return the folder of BFCL's package.

    Args:
        required: Further packages that must be installed.

    Raises:
        InputError: The package, or one that its simulators need, is not installed.
    """
    spec = find_spec("bfcl_eval")
    missing = [name for name in ("bfcl_eval", "mpmath", *required) if find_spec(name) is None]
    if missing or spec is None or spec.origin is None:
        raise InputError(f"bfcl: {' and '.join(missing)} not installed; run: {INSTALL}")
    return Path(spec.origin).parent


@lru_cache
def class_documents(class_name: str) -> tuple[Mapping[str, Any], ...]:
    """Return the function documents of a simulator, in order."""
    file = f"{(DOCUMENTS | MEMORIES | VECTOR | WEB)[class_name]}.json"
    return tuple(_read_lines(package_folder() / "data" / "multi_turn_func_doc" / file))


def tool_name(function_name: str) -> str:
    """Return the name under which a function is offered: most providers accept no dots.

    Source: ``convert_func_name`` of BFCL's ``ast_checker`` with ``underscore_to_dot``.
    """
    return function_name.replace(".", "_")


def tools_of(documents: Sequence[Mapping[str, Any]]) -> tuple[ToolSpec, ...]:
    """Return function documents as tools."""
    return tuple(
        ToolSpec(
            tool_name(document["name"]),
            {**_schema(document["parameters"]), "type": "object"},
            document["description"],
        )
        for document in documents
    )


def _schema(document: Mapping[str, Any]) -> JsonObject:
    schema: JsonObject = {}
    for keyword, value in document.items():
        if keyword == "type":
            schema["type"] = _TYPES.get(str(value), "string")
        elif keyword == "properties" and isinstance(value, dict):
            schema["properties"] = {name: _schema(item) for name, item in value.items()}
        elif keyword == "items" and isinstance(value, dict):
            schema["items"] = _schema(value)
        elif keyword == "optional" or (keyword == "required" and not isinstance(value, list)):
            continue  # Some documents mark single properties, which JSON Schema does not support.
        else:
            schema[keyword] = value
    return schema


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a category."""

    value: dict[str, Any]
    answer: Any
    """The ground truth; None in the categories of (ir)relevance."""


def read_entries(category: str) -> Iterator[Entry]:
    """Yield a category's entries in order.

    Raises:
        InputError: BFCL is not installed.
    """
    data = package_folder() / "data"
    answers = data / "possible_answer" / f"BFCL_v4_{category}.json"
    known: dict[str, Any] = {}
    if answers.exists():
        known = {line["id"]: line["ground_truth"] for line in _read_lines(answers)}
    for value in _read_lines(data / f"BFCL_v4_{category}.json"):
        yield Entry(value, known.get(value["id"]))


def read_chats(scenario: str) -> list[dict[str, Any]]:
    """Return the conversations that precede the questions of a memory scenario, in order."""
    folder = package_folder() / "data" / "memory_prereq_conversation"
    return list(_read_lines(folder / f"memory_{scenario}.json"))


def join_messages(messages: list[dict[str, str]]) -> str:
    """Return the messages of one turn as one text."""
    return "\n\n".join(message["content"] for message in messages)


def _read_lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)

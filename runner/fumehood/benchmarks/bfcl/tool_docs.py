"""BFCL's documents of functions, from where its package lies, as tools: types in JSON Schema's words.

Nothing of the package is imported to read them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fumehood.core.errors import InputError
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.tools import ToolSpec

INSTALL = "pip install 'fumehood[bfcl]' && pip install --no-deps 'bfcl-eval==2026.3.23'"
"""Without its dependencies: they are the clients of every vendor of models, and nothing here asks one."""

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
"""Simulator → its module and its document, as ``bfcl_eval.constants.executable_backend_config`` has them."""
MEMORIES = {"MemoryAPI_kv": "memory_kv", "MemoryAPI_rec_sum": "memory_rec_sum"}
"""Those that are an agent's memory, likewise; a third, of vectors, needs a model of its own."""

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
"""As ``bfcl_eval.constants.type_mappings``; whatever else there is, is a text."""


def package_folder(*needed: str) -> Path:
    """Return where BFCL's package lies.

    Args:
        needed: further packages without which it is of no use.

    Raises:
        InputError: it, or what its simulators need, is not installed.
    """
    found = find_spec("bfcl_eval")
    missing = [name for name in ("bfcl_eval", "mpmath", *needed) if find_spec(name) is None]
    if missing or found is None or found.origin is None:
        raise InputError(f"{' and '.join(missing)} not installed: {INSTALL}")
    return Path(found.origin).parent


@lru_cache
def class_documents(class_name: str) -> tuple[Mapping[str, Any], ...]:
    """Return the functions of one simulator, in their order."""
    file = f"{(DOCUMENTS | MEMORIES)[class_name]}.json"
    path = package_folder() / "data" / "multi_turn_func_doc" / file
    return tuple(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())


def tools_of(documents: Sequence[Mapping[str, Any]]) -> tuple[ToolSpec, ...]:
    """Return functions as tools."""
    return tuple(
        ToolSpec(
            each["name"], {**_schema(each["parameters"]), "type": "object"}, each["description"]
        )
        for each in documents
    )


def _schema(documented: Mapping[str, Any]) -> JsonObject:
    schema: JsonObject = {}
    for word, value in documented.items():
        if word == "type":
            schema["type"] = _TYPES.get(str(value), "string")
        elif word == "properties" and isinstance(value, dict):
            schema["properties"] = {name: _schema(each) for name, each in value.items()}
        elif word == "items" and isinstance(value, dict):
            schema["items"] = _schema(value)
        elif word == "optional" or (word == "required" and not isinstance(value, list)):
            continue  # Some documents say so at a property, where JSON Schema has no place for it.
        else:
            schema[word] = _json(value)
    return schema


def _json(value: Any) -> Json:
    return value  # type: ignore[no-any-return]

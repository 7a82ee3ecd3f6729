"""Reads the data files of the package bfcl-eval without importing the package."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a category."""

    value: dict[str, Any]
    answer: Any
    """Its ground truth; None for categories in which nothing is to be called, or anything is."""


def entries(category: str) -> Iterator[Entry]:
    """Yield a category's entries in their order.

    Raises:
        InputError: BFCL is not installed.
    """
    data = package_folder() / "data"
    answers = data / "possible_answer" / f"BFCL_v4_{category}.json"
    known = (
        {each["id"]: each["ground_truth"] for each in _lines(answers)} if answers.exists() else {}
    )
    for value in _lines(data / f"BFCL_v4_{category}.json"):
        yield Entry(value, known.get(value["id"]))


def chats(scenario: str) -> list[dict[str, Any]]:
    """Return the conversations that come before the questions of a scenario of memory, in their order."""
    return list(
        _lines(package_folder() / "data" / "memory_prereq_conversation" / f"memory_{scenario}.json")
    )


def words(messages: list[dict[str, str]]) -> str:
    """Return the messages of one turn as one text."""
    return "\n\n".join(message["content"] for message in messages)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)

"""Turns pydantic errors into one line each, for configurations, tasks and manifests.

A line names the field, the reason, and the nearest known key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from fumehood.core.conditions import is_number
from fumehood.core.errors import nearest

Location = tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class FieldError:
    """One error of a value."""

    location: Location
    """Keys and positions, outermost first; empty for the value as a whole."""
    reason: str

    def __str__(self) -> str:
        """Return ``field: reason``, such as ``budget.steps: is missing``."""
        return f"{field_path(self.location)}: {self.reason}" if self.location else self.reason


def field_path(location: Location) -> str:
    """Return a location as text, such as ``fault_plan[0].trigger``."""
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)
    return path.removeprefix(".")


def field_errors(error: ValidationError, model: type[BaseModel]) -> tuple[FieldError, ...]:
    """Return the errors of a value, unknown keys first.

    A misspelt key often causes a missing one too, and its name is more helpful.

    Args:
        error: raised by validating the value.
        model: of the value.
    """
    schema = model.model_json_schema()
    errors = sorted(error.errors(), key=lambda item: item["type"] != "extra_forbidden")
    return tuple(_field_error(item, schema) for item in errors)


def _field_error(item: Mapping[str, Any], schema: Mapping[str, Any]) -> FieldError:
    place, context, given = (
        _Place.at(item["loc"], schema),
        item.get("ctx", {}),
        _shown(item["input"]),
    )
    location = place.location
    match item["type"]:
        case "missing":
            reason = "is missing"
        case "extra_forbidden":
            reason = f"is not a known key; {nearest(str(location[-1]), place.known)}"
        case "literal_error":
            reason = f"must be {context['expected']}, not {given}"
        case "union_tag_invalid":
            location = (*location, context["discriminator"].strip("'"))
            known = [word.strip("' ") for word in context["expected_tags"].split(",")]
            reason = f"{context['tag']!r} is not known; {nearest(context['tag'], known)}"
        case "union_tag_not_found":
            location = (*location, context["discriminator"].strip("'"))
            reason = "is missing"
        case "list_type" | "tuple_type":
            reason = f"must be a list, such as {_as_list(location, item['input'])}"
        case "string_type" if is_number(item["input"]):
            reason = f"must be text: write {json.dumps(str(item['input']))}"
        case "model_type" | "dict_type" | "model_attributes_type":
            reason = f"must be an object, not {given}"
        case "value_error":
            reason = str(context["error"])
        case _:
            message = item["msg"].removeprefix("Input ")
            reason = f"{message[:1].lower()}{message[1:]}, not {given}"
    return FieldError(location, reason)


def _as_list(location: Location, value: object) -> str:
    """Return the list that was probably meant; a dotted path becomes its keys."""
    if isinstance(value, str) and ("path" in location[-1:] or "paths" in location[-2:-1]):
        return json.dumps(value.split("."))
    return f"[{value}]"


_SHOWN_CHARACTERS = 60


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


_MEMBERS = {"text": "", "object": "", "scenario": "ScenarioWorld", "built_in": "BuiltInPart"}
"""Tags of the members of a value that has several forms → name of the member's schema; empty for
text and for the only object among the members, or the first."""


@dataclass(frozen=True, slots=True)
class _Place:
    """The place in a JSON Schema that a location leads to."""

    location: Location
    """Without the tags and types that pydantic adds for the members of a union."""
    known: list[str]
    """The keys that the innermost object may have."""

    @classmethod
    def at(cls, location: Location, schema: Mapping[str, Any]) -> _Place:
        definitions, here, known = schema.get("$defs", {}), schema, list[str]()
        kept: list[int | str] = []
        for step in location:
            here = _resolve(here, definitions)
            tags = here.get("discriminator", {}).get("mapping", {})
            if step in tags:
                here = {"$ref": tags[step]}
                continue
            if step in _MEMBERS:
                here = definitions.get(_MEMBERS[step], here)
                continue
            if "properties" in here:
                known = list(here["properties"])
            # A custom validator has no schema here and reports exact locations.
            if isinstance(step, int) or here.get("type") == "object" or not here:
                kept.append(step)
            here = _inner(here, step)
        return cls(tuple(kept), known)


def _resolve(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow references, and take the schema of an optional value."""
    while True:
        if "$ref" in schema:
            schema = definitions[schema["$ref"].rsplit("/", 1)[-1]]
        elif "anyOf" in schema:
            schema = next((item for item in schema["anyOf"] if item.get("type") != "null"), {})
        elif "oneOf" in schema and "discriminator" not in schema:
            schema = next((item for item in schema["oneOf"] if "$ref" in item), {})
        else:
            return schema


def _inner(schema: Mapping[str, Any], step: int | str) -> Mapping[str, Any]:
    if isinstance(step, int):
        inner = schema.get("items")
    else:
        inner = schema.get("properties", {}).get(step) or schema.get("additionalProperties")
    return inner if isinstance(inner, Mapping) else {}

"""Why a record is not valid: which field, and what would mend it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from fumehood.core.errors import nearest

Location = tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing that is wrong with a record."""

    location: Location
    """Keys and positions from the outside in; empty for the record as a whole."""
    reason: str

    def __str__(self) -> str:
        """Return ``field: reason``, such as ``budget.steps: is missing``."""
        return f"{field_path(self.location)}: {self.reason}" if self.location else self.reason


def field_path(location: Location) -> str:
    """Return a location as people write it, such as ``fault_plan[0].trigger``."""
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)
    return path.removeprefix(".")


def misfits_of(error: ValidationError, model: type[BaseModel]) -> tuple[FieldError, ...]:
    """Return what ``error`` says about a record of ``model``, unknown keys first.

    A misspelt key is also a missing one, and its name says more.
    """
    schema = model.model_json_schema()
    found = sorted(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
    return tuple(_misfit(each, schema) for each in found)


def _misfit(found: Mapping[str, Any], schema: Mapping[str, Any]) -> FieldError:
    place, context, given = (
        _Place.at(found["loc"], schema),
        found.get("ctx", {}),
        _shown(found["input"]),
    )
    location = place.location
    match found["type"]:
        case "missing":
            reason = "is missing"
        case "extra_forbidden":
            reason = f"is no key of this format; {nearest(str(location[-1]), place.known)}"
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
            reason = f"must be a list, such as [{found['input']}]"
        case "model_type" | "dict_type" | "model_attributes_type":
            reason = f"must be an object, not {given}"
        case "value_error":
            reason = str(context["error"])
        case _:
            message = found["msg"].removeprefix("Input ")
            reason = f"{message[:1].lower()}{message[1:]}, not {given}"
    return FieldError(location, reason)


_SHOWN_CHARACTERS = 60


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a location leads to in a JSON Schema."""

    location: Location
    """Without the words that the validator puts in for itself: tags and types of the arms of a union."""
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
            if "properties" in here:
                known = list(here["properties"])
            # A custom validator has no schema here and reports exact locations.
            if isinstance(step, int) or here.get("type") == "object" or not here:
                kept.append(step)
            here = _inner(here, step)
        return cls(tuple(kept), known)


def _resolve(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow references, and optional values to what they are when they are there."""
    while True:
        if "$ref" in schema:
            schema = definitions[schema["$ref"].rsplit("/", 1)[-1]]
        elif "anyOf" in schema:
            schema = next((each for each in schema["anyOf"] if each.get("type") != "null"), {})
        else:
            return schema


def _inner(schema: Mapping[str, Any], step: int | str) -> Mapping[str, Any]:
    if isinstance(step, int):
        inner = schema.get("items")
    else:
        inner = schema.get("properties", {}).get(step) or schema.get("additionalProperties")
    return inner if isinstance(inner, Mapping) else {}

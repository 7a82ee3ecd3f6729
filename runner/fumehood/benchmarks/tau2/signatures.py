"""What tools of τ²-bench take, as their Python signatures and docstrings have it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from fumehood.core.json_values import JsonObject
from fumehood.core.tools import ToolSpec

Execute = Callable[..., Coroutine[Any, Any, str]]

_WORDS: Mapping[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    dict: "object",
}


def described(name: str, execute: Execute) -> ToolSpec:
    """Return a tool as its function tells it."""
    return ToolSpec(name, _parameters_of(execute), _sentence(execute.__doc__ or name))


def _parameters_of(execute: Execute) -> JsonObject:
    given = inspect.signature(execute, eval_str=True).parameters
    required = [name for name, each in given.items() if each.default is inspect.Parameter.empty]
    return {
        "type": "object",
        "properties": {name: _schema_of(each.annotation) for name, each in given.items()},
        "required": list(required),
        "additionalProperties": False,
    }


def _schema_of(kind: Any) -> JsonObject:
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return _schema_of(get_args(kind)[0])
    if origin is Literal:
        return {"type": "string", "enum": list(get_args(kind))}
    if origin is list:
        return {"type": "array", "items": _schema_of(get_args(kind)[0])}
    if inspect.isclass(kind) and issubclass(kind, BaseModel):
        schema: JsonObject = kind.model_json_schema()
        # What refers to other models would refer to nothing from within the tool's schema.
        return {"type": "object"} if "$defs" in schema else schema
    return {"type": _WORDS.get(origin or kind, "string")}


def _sentence(text: str) -> str:
    words = " ".join(text.split())
    return words if words.endswith(".") else f"{words}."

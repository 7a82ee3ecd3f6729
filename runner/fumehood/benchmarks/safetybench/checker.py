"""Runs Agent-SafetyBench's unmodified environments from their source, in a separate process.

Each question contains the environments and all calls so far. The child process that answers repeats
all calls from the start, because it leaves no state behind.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

INSTALL = "no installation is necessary"
CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    "integer": int,
    "number": float,
    "boolean": bool,
    "object": lambda value: value if isinstance(value, dict) else json.loads(value),
    "array": lambda value: value if isinstance(value, list) else json.loads(value),
}
_IMPORTED_BY_ENVIRONMENTS = ("copy", "datetime", "math", "re", "subprocess", "time", "uuid")


class BaseEnv:
    """Base class of the environments. Source: the original's class of that name, without its file
    access."""

    tool_descs: Sequence[Mapping[str, Any]] = ()

    def call_tool(self, tool_name: str, arguments: dict[str, Any]) -> Any:
        """Call a method with its known arguments, converted to the types of its description."""
        description = next(tool for tool in self.tool_descs if tool["name"] == tool_name)
        parameters = description["parameters"]
        for name in parameters.get("required", ()):
            if name not in arguments:
                return _failure(f"Missing required parameter {name} for tool {tool_name}.")
        converted = {}
        for name in (name for name in arguments if name in parameters["properties"]):
            kind = parameters["properties"][name]["type"]
            try:
                converted[name] = CONVERSIONS.get(kind, lambda value: value)(arguments[name])
            except (TypeError, ValueError):
                return _failure(f"Parameter {name} should have type {kind}.")
        return getattr(self, tool_name)(**converted)


def load() -> None:
    """Import the modules that environments import, and define their base class."""
    for name in _IMPORTED_BY_ENVIRONMENTS:
        import_module(name)
    base = ModuleType("BaseEnv")
    base.BaseEnv = BaseEnv  # type: ignore[attr-defined]
    sys.modules[base.__name__] = base


def check(question: dict[str, Any]) -> dict[str, Any]:
    """Return the last call's ``result`` or the error it ``raised``, and the ``state`` after it."""
    random.seed(0)
    environments = {item["name"]: _build(item) for item in question["environments"]}
    reply: dict[str, Any] = {}
    for environment, tool, arguments in question["calls"]:
        try:
            reply = {"result": environments[environment].call_tool(tool, arguments)}
        except Exception as error:
            reply = {"raised": repr(error)[:500]}
    state = {name: vars(environment) for name, environment in environments.items()}
    serialised: dict[str, Any] = json.loads(json.dumps({**reply, "state": state}, default=str))
    return serialised


def _build(environment: Mapping[str, Any]) -> Any:
    namespace: dict[str, Any] = {"__name__": environment["name"]}
    exec(compile(environment["source"], f"{environment['name']}.py", "exec"), namespace)
    environment_class = namespace[environment["name"]]
    environment_class.tool_descs = environment["tools"]
    return environment_class(parameters=environment["parameters"])


def _failure(message: str) -> dict[str, Any]:
    return {"success": False, "message": message}

"""Agent-SafetyBench's environments, as they are, from their source. Runs in a process of its own alone.

Every question holds the environments and all calls so far: they are made again from the start, because a
child that answers leaves nothing behind.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

INSTALL = "nothing has to be"
CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    "integer": int,
    "number": float,
    "boolean": bool,
    "object": lambda value: value if isinstance(value, dict) else json.loads(value),
    "array": lambda value: value if isinstance(value, list) else json.loads(value),
}
_MAY_BE_IMPORTED = ("copy", "datetime", "math", "re", "subprocess", "time", "uuid")


class BaseEnv:
    """What the environments are derived from. Source: the original's class of that name, less its files."""

    tool_descs: Sequence[Mapping[str, Any]] = ()

    def call_tool(self, tool_name: str, arguments: dict[str, Any]) -> Any:
        """Call a method with those of the arguments that it has, converted as its description says."""
        parameters = next(each for each in self.tool_descs if each["name"] == tool_name)[
            "parameters"
        ]
        for name in parameters.get("required", ()):
            if name not in arguments:
                return _refused(f"Missing required parameter {name} for tool {tool_name}.")
        given = {}
        for name in (name for name in arguments if name in parameters["properties"]):
            kind = parameters["properties"][name]["type"]
            try:
                given[name] = CONVERSIONS.get(kind, lambda value: value)(arguments[name])
            except (TypeError, ValueError):
                return _refused(f"Parameter {name} should have type {kind}.")
        return getattr(self, tool_name)(**given)


def load() -> None:
    """Lend the environments what they import."""
    for name in _MAY_BE_IMPORTED:
        import_module(name)
    base = ModuleType("BaseEnv")
    base.BaseEnv = BaseEnv  # type: ignore[attr-defined]
    sys.modules[base.__name__] = base


def check(question: dict[str, Any]) -> dict[str, Any]:
    """Return the ``result`` of the last call, or what it ``raised``, and the ``state`` after it."""
    random.seed(0)
    environments = {each["name"]: _build(each) for each in question["environments"]}
    said: dict[str, Any] = {}
    for environment, tool, arguments in question["calls"]:
        try:
            said = {"result": environments[environment].call_tool(tool, arguments)}
        except Exception as error:
            said = {"raised": repr(error)[:500]}
    state = {name: vars(environment) for name, environment in environments.items()}
    shown: dict[str, Any] = json.loads(json.dumps({**said, "state": state}, default=str))
    return shown


def _build(told: Mapping[str, Any]) -> Any:
    space: dict[str, Any] = {"__name__": told["name"]}
    exec(compile(told["source"], f"{told['name']}.py", "exec"), space)
    made = space[told["name"]]
    made.tool_descs = told["tools"]
    return made(parameters=told["parameters"])


def _refused(message: str) -> dict[str, Any]:
    return {"success": False, "message": message}

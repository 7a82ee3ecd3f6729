"""BFCL's unmodified simulators: Python objects with state.

Initial state: ``initial_config`` and ``involved_classes`` of a BFCL entry, and ``long_context``.
Later state: all public attributes of all objects, which BFCL compares.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Mapping
from importlib import import_module
from threading import Lock
from typing import Any

from fumehood.benchmarks.bfcl.package import DOCUMENTS, class_documents, package_folder, tools_of
from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json, JsonObject, copy_object
from fumehood.core.tools import Failure, FailureKind, ToolCall, ToolResult, ToolSpec, Value
from fumehood.worlds.schema import keep_order

SOURCES = "bfcl_eval.eval_checker.multi_turn_eval.func_source_code"
STATELESS = frozenset({"MathAPI"})
"""Source: ``bfcl_eval.constants.executable_backend_config.STATELESS_CLASSES``."""
LARGEST = {"base": 10**12, "exponent": 10_000, "precision": 1_000}
"""Limits of arguments that determine the calculator's run time. It runs in the service process."""

_call_lock = Lock()
"""Serialises calls, because the calculator sets the precision of the whole process."""


def preload() -> None:
    """Import all simulators and their documents while this process can still read them."""
    # datetime imports this module on first use.
    import_module("_strptime")
    for class_name in DOCUMENTS:
        _simulator(class_name)
        class_documents(class_name)


class Bfcl:
    """The simulators of one entry."""

    toolset_id = "bfcl_v4"
    checks_itself = True

    def __init__(self, state: JsonObject) -> None:
        """Create the simulators.

        Raises:
            SpecError: The state is invalid.
            InputError: BFCL is not installed.
        """
        self._objects = self._create_objects(state)
        self.revision = 0
        documents = [document for name in self._objects for document in class_documents(name)]
        self._tools = tools_of(documents)
        offered = {tool.name for tool in self._tools}
        # If two classes share a function name, the later class answers, as in BFCL.
        self._methods = {
            name: method
            for simulator in self._objects.values()
            for name, method in inspect.getmembers(simulator, predicate=inspect.ismethod)
            if name in offered
        }

    @staticmethod
    def _create_objects(state: JsonObject) -> dict[str, Any]:
        return _create_simulators(state)

    @property
    def state(self) -> JsonObject:
        """The objects' public attributes, by class."""
        return {name: _to_json(simulator) for name, simulator in self._objects.items()}

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the documented functions of all classes, in BFCL's order."""
        return self._tools

    def call(self, call: ToolCall) -> ToolResult:
        """Call the method; an exception becomes an error message, as in BFCL."""
        for name, largest in LARGEST.items():
            value = call.arguments.get(name)
            if isinstance(value, int | float) and abs(value) > largest:
                reason = f"Error during execution: {name} is larger than {largest}"
                return Failure(FailureKind.INVALID_CALL, "error", reason)
        self.revision += 1
        with _call_lock:
            try:
                result = self._methods[call.tool_name](**copy_object(call.arguments))
            except Exception as error:  # BFCL's executor catches every exception in the same way.
                return Failure(FailureKind.WORLD, "error", f"Error during execution: {error}")
            return Value(_output(result))


def _create_simulators(state: Mapping[str, Json]) -> dict[str, Any]:
    classes, config = state.get("involved_classes"), state.get("initial_config")
    if not isinstance(classes, list) or not isinstance(config, dict):
        raise SpecError("initial_state", "must have involved_classes and initial_config")
    package_folder()
    objects: dict[str, Any] = {}
    for name in classes:
        if not isinstance(name, str) or name not in DOCUMENTS:
            raise SpecError("initial_state.involved_classes", f"unknown simulator {name!r}")
        objects[name] = _simulator(name)()
        if name not in STATELESS:
            _load(objects[name], config.get(name, {}), state.get("long_context") is True)
    return objects


def _load(simulator: Any, scenario: Json, long_context: bool) -> None:
    try:
        simulator._load_scenario(scenario, long_context=long_context)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise SpecError(
            "initial_state.initial_config", f"is invalid for its simulator: {error!r}"
        ) from None


def _simulator(class_name: str) -> Any:
    module = import_module(f"{SOURCES}.{DOCUMENTS[class_name]}")
    if class_name == "TicketAPI":
        keep_order(module)
    return getattr(module, class_name)


def _output(result: Any) -> JsonObject:
    """Return a result as BFCL gives it to an agent: a dict as JSON, all other values as text."""
    if isinstance(result, dict):
        try:
            converted = json.loads(json.dumps(result, allow_nan=False))
        except (TypeError, ValueError):
            return {"result": str(result)}
        return converted if isinstance(converted, dict) else {}
    return {"result": str(result)}


def _to_json(value: Any, ancestors: tuple[int, ...] = ()) -> Json:
    """Return a value as JSON: an object as its public attributes, a cyclic reference as its
    class."""
    match value:
        case float():
            return value if math.isfinite(value) else str(value)
        case None | bool() | int() | str():
            result: Json = value
        case list() | tuple():
            result = [_to_json(item, ancestors) for item in value]
        case dict():
            result = {str(name): _to_json(item, ancestors) for name, item in value.items()}
        case set() | frozenset():
            result = [_to_json(item, ancestors) for item in sorted(value, key=str)]
        case _:
            result = _attributes(value, ancestors)
    return result


def _attributes(value: Any, ancestors: tuple[int, ...]) -> JsonObject:
    attributes: JsonObject = {"class": type(value).__name__}
    if id(value) not in ancestors and hasattr(value, "__dict__"):
        inner = (*ancestors, id(value))
        public = {name: item for name, item in vars(value).items() if not name.startswith("_")}
        attributes |= {name: _to_json(item, inner) for name, item in public.items()}
    return attributes

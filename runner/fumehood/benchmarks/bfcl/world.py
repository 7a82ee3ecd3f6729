"""BFCL's own simulators, as they are: Python objects that remember, hosted here.

State given: ``initial_config`` and ``involved_classes`` of an entry of BFCL, and ``long_context``. State
shown: every public attribute of every object, which is what BFCL compares.
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
"""Of arguments that decide how long the calculator works: it works in the service, for all."""


_calculating = Lock()
"""The calculator sets the precision of the whole process, and shows its results by it."""


def preload() -> None:
    """Import every simulator and read its documents, before a process may no longer read them."""
    # Found by datetime at its first use.
    import_module("_strptime")
    for class_name in DOCUMENTS:
        _simulator(class_name)
        class_documents(class_name)


class Bfcl:
    """A world whose memory is a few objects."""

    toolset_id = "bfcl_v4"
    checks_itself = True

    def __init__(self, state: JsonObject) -> None:
        """Make the objects.

        Raises:
            SpecError: the state is none of BFCL's.
            InputError: BFCL is not installed.
        """
        self._objects = self._made(state)
        self.revision = 0
        documents = [each for name in self._objects for each in class_documents(name)]
        self._tools = tools_of(documents)
        offered = {tool.name for tool in self._tools}
        # Where two classes share a name, the later one answers, as in BFCL.
        self._methods = {
            name: method
            for each in self._objects.values()
            for name, method in inspect.getmembers(each, predicate=inspect.ismethod)
            if name in offered
        }

    @staticmethod
    def _made(state: JsonObject) -> dict[str, Any]:
        return _objects(state)

    @property
    def state(self) -> JsonObject:
        """The objects' public attributes, by class."""
        return {name: _plain(each) for name, each in self._objects.items()}

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the documented functions of all classes, in BFCL's order."""
        return self._tools

    def call(self, call: ToolCall) -> ToolResult:
        """Call the method; what it raises is what BFCL tells the agent."""
        for name, largest in LARGEST.items():
            given = call.arguments.get(name)
            if isinstance(given, int | float) and abs(given) > largest:
                reason = f"Error during execution: {name} is larger than {largest}"
                return Failure(FailureKind.INVALID_CALL, "error", reason)
        self.revision += 1
        with _calculating:
            try:
                result = self._methods[call.tool_name](**copy_object(call.arguments))
            except Exception as error:  # Whatever it is, BFCL's executor catches it just so.
                return Failure(FailureKind.WORLD, "error", f"Error during execution: {error}")
            return Value(_output(result))


def _objects(state: Mapping[str, Json]) -> dict[str, Any]:
    classes, config = state.get("involved_classes"), state.get("initial_config")
    if not isinstance(classes, list) or not isinstance(config, dict):
        raise SpecError("initial_state", "must have involved_classes and initial_config")
    package_folder()
    objects: dict[str, Any] = {}
    for name in classes:
        if not isinstance(name, str) or name not in DOCUMENTS:
            raise SpecError("initial_state.involved_classes", f"there is no simulator {name!r}")
        objects[name] = _simulator(name)()
        if name not in STATELESS:
            _load(objects[name], config.get(name, {}), state.get("long_context") is True)
    return objects


def _load(simulator: Any, scenario: Json, long_context: bool) -> None:
    try:
        simulator._load_scenario(scenario, long_context=long_context)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise SpecError(
            "initial_state.initial_config", f"does not fit its simulator: {error!r}"
        ) from None


def _simulator(class_name: str) -> Any:
    module = import_module(f"{SOURCES}.{DOCUMENTS[class_name]}")
    if class_name == "TicketAPI":
        keep_order(module)
    return getattr(module, class_name)


def _output(result: Any) -> JsonObject:
    """Return what BFCL shows an agent: a text, a dict as JSON, and of anything else its text."""
    if isinstance(result, dict):
        try:
            plain = json.loads(json.dumps(result, allow_nan=False))
        except (TypeError, ValueError):
            return {"result": str(result)}
        return plain if isinstance(plain, dict) else {}
    return {"result": str(result)}


def _plain(value: Any, within: tuple[int, ...] = ()) -> Json:
    """Return a value as JSON; an object shows its public attributes, one that holds us shows its class."""
    match value:
        case float():
            return value if math.isfinite(value) else str(value)
        case None | bool() | int() | str():
            plain: Json = value
        case list() | tuple():
            plain = [_plain(each, within) for each in value]
        case dict():
            plain = {str(name): _plain(each, within) for name, each in value.items()}
        case set() | frozenset():
            plain = [_plain(each, within) for each in sorted(value, key=str)]
        case _:
            plain = _attributes(value, within)
    return plain


def _attributes(value: Any, within: tuple[int, ...]) -> JsonObject:
    shown: JsonObject = {"class": type(value).__name__}
    if id(value) not in within and hasattr(value, "__dict__"):
        inner = (*within, id(value))
        public = {name: each for name, each in vars(value).items() if not name.startswith("_")}
        shown |= {name: _plain(each, inner) for name, each in public.items()}
    return shown

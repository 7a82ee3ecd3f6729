"""Imports τ²-bench's domains from the package inspect-evals without its framework.

The package's tools run unmodified. They import four names of the framework, which this module
replaces during the import: a base class for objects, a store of objects, an error, and a decorator
for tools. The store contains the objects of the thread's current call. Random names of new bills
become numbers.
"""

from __future__ import annotations

import inspect
import sys
import tomllib
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from threading import local
from types import ModuleType, SimpleNamespace, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict

from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.core.tools import ToolResult, ToolSpec, Value
from fumehood.worlds.schema import reject

INSTALL = "pip install --no-deps 'inspect-evals==0.26.0'"
REJECTION_CHARS_MAX = 2000
"""Some rejections repeat all arguments."""
_ROOT = "inspect_evals.tau2"
_current = local()
"""The objects of this thread's call by class name, and the numbers for new bills."""


class _Object(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)


@dataclass(frozen=True, slots=True)
class Side:
    """The tools and the database of the company or of the user."""

    tools_class: Any
    database: Any
    """Class of its database."""
    executes: Mapping[str, Execute]
    """Its tools' functions by name."""

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """Its tools."""
        return tuple(tool_spec(name, execute) for name, execute in self.executes.items())


@dataclass(frozen=True, slots=True)
class Domain:
    """An imported domain."""

    agent: Side
    user: Side | None = None
    """None if users have no tools."""
    synchronise: Callable[[Any, Any], object] | None = None
    """The package's function that runs after every call, on the user's and the agent's objects."""

    @property
    def sides(self) -> tuple[Side, ...]:
        """The agent's side, then the user's."""
        return (self.agent, self.user) if self.user else (self.agent,)

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """Both sides' tools, the agent's first."""
        return tuple(tool for side in self.sides for tool in side.tools)

    @property
    def executes(self) -> Mapping[str, Execute]:
        """Both sides' functions by name."""
        return {name: execute for side in self.sides for name, execute in side.executes.items()}


_SIDES: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "airline": (("AirlineAgentTools", "data_model:FlightDB", "tools:all_airline_tools"),),
    "retail": (("RetailAgentTools", "data_model:RetailDB", "tools:all_retail_tools"),),
    "banking": (
        ("BankingAgentTools", "data_model:TransactionalDB", "tools:all_banking_agent_tools"),
        ("BankingUserTools", "data_model:TransactionalDB", "user_tools:all_banking_user_tools"),
    ),
    "telecom": (
        ("TelecomAgentTools", "data_model:TelecomDB", "tools:all_telecom_agent_tools"),
        ("TelecomUserTools", "user_data_model:TelecomUserDB", "user_tools:all_telecom_user_tools"),
    ),
}
"""Domain → for each side: class of its tools, class of its database, list of its tools."""
_SYNCHRONISED = ("telecom",)


def data_folder(domain: str) -> Path:
    """Return the folder of the package's data of a domain.

    Raises:
        InputError: The package is not installed.
    """
    return (
        _package()
        / "tau2"
        / "data"
        / "domains"
        / {"banking": "banking_knowledge"}.get(domain, domain)
    )


@cache
def domain(name: str) -> Domain:
    """Return a domain, which is imported once.

    Raises:
        InputError: The package is not installed.
    """
    replacements = _framework_replacements(_package())
    before = {module: sys.modules.get(module) for module in replacements}
    sys.modules.update(replacements)
    try:
        agent, *user = [_side(name, *parts) for parts in _SIDES[name]]
        synchronise = _attribute(name, "environment:Environment") if name in _SYNCHRONISED else None
        return Domain(agent, user[0] if user else None, synchronise)
    finally:
        for module, original in before.items():
            if original is None:
                del sys.modules[module]
            else:
                sys.modules[module] = original


@contextmanager
def calling(*objects: Any, numbers: Iterator[int] | None = None) -> Iterator[None]:
    """Make these objects the ones that tools use inside the context."""
    _current.objects = {type(item).__name__: item for item in objects}
    _current.numbers = numbers or count(1)
    try:
        yield
    finally:
        del _current.objects


def execute_tool(
    execute: Execute, arguments: Mapping[str, Any], after: Callable[[], object]
) -> ToolResult:
    """Return a tool's result; an exception of the tool or of ``after`` becomes a rejection."""
    try:
        result = _run(execute(**arguments))
        after()
        return Value({"result": result})
    except Exception as error:
        # The original does the same.
        return reject("tool_error", str(error)[:REJECTION_CHARS_MAX] or type(error).__name__)


def _side(name: str, tools_class: str, database: str, tools: str) -> Side:
    module = import_module(f"{_ROOT}.{name}.{tools_class}")
    if hasattr(module, "uuid"):
        module.uuid = SimpleNamespace(  # type: ignore[attr-defined]
            uuid4=lambda: SimpleNamespace(hex=f"{next(_current.numbers):08x}")
        )
    factories = _attribute(name, tools)
    # The package prefixes some tools with the domain's name; the original does not.
    executes = {factory.__name__.removeprefix(f"{name}_"): factory() for factory in factories}
    return Side(getattr(module, tools_class), _attribute(name, database), executes)


def _attribute(domain_name: str, place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(import_module(f"{_ROOT}.{domain_name}.{module}"), attribute)


def _run(work: Coroutine[Any, Any, str]) -> str:
    try:
        work.send(None)
    except StopIteration as end:
        return str(end.value)
    raise RuntimeError("a tool of τ²-bench must not wait")


def _package() -> Path:
    spec = find_spec("inspect_evals")
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"tau2: inspect-evals is not installed; run: {INSTALL}")
    return Path(spec.submodule_search_locations[0])


def _framework_replacements(package: Path) -> dict[str, ModuleType]:
    def store_as(kind: type[Any], _instance: str | None = None) -> Any:
        return _current.objects[kind.__name__]

    folders = ["inspect_evals", _ROOT, *(f"{_ROOT}.{name}" for name in _SIDES)]
    attributes_of: dict[str, dict[str, Any]] = {
        "inspect_ai": {"__path__": []},
        "inspect_ai.model": {"Content": object, "ContentText": object},
        "inspect_ai.tool": {
            "Tool": object,
            "ToolError": type("ToolError", (Exception,), {}),
            "tool": _identity,
        },
        "inspect_ai.util": {"StoreModel": _Object, "store_as": store_as},
        "toml": {"load": tomllib.load, "loads": tomllib.loads},
        **{name: {"__path__": [str(package.joinpath(*name.split(".")[1:]))]} for name in folders},
    }
    modules = {name: ModuleType(name) for name in attributes_of}
    for name, attributes in attributes_of.items():
        vars(modules[name]).update(attributes)
    return modules


def _identity(factory: Any) -> Any:
    return factory


Execute = Callable[..., Coroutine[Any, Any, str]]

_TYPES: Mapping[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    dict: "object",
}


def tool_spec(name: str, execute: Execute) -> ToolSpec:
    """Return a tool, described by its function's signature and docstring."""
    return ToolSpec(name, _parameters_of(execute), _sentence(execute.__doc__ or name))


def _parameters_of(execute: Execute) -> JsonObject:
    parameters = inspect.signature(execute, eval_str=True).parameters
    required = [
        name for name, item in parameters.items() if item.default is inspect.Parameter.empty
    ]
    return {
        "type": "object",
        "properties": {name: _schema_of(item.annotation) for name, item in parameters.items()},
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
        # References to other models would be invalid inside the tool's schema.
        return {"type": "object"} if "$defs" in schema else schema
    return {"type": _TYPES.get(origin or kind, "string")}


def _sentence(text: str) -> str:
    words = " ".join(text.split())
    return words if words.endswith(".") else f"{words}."

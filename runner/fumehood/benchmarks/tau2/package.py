"""Imports τ²-bench's domains from the package inspect-evals without its framework."""

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
from fumehood.worlds.schema import refuse

INSTALL = "pip install --no-deps 'inspect-evals==0.26.0'"
TEXT_CHARS_MAX = 2000
"""Of a refusal: some repeat the whole of what was sent."""
_ROOT = "inspect_evals.tau2"
_now = local()
"""The objects of whoever calls on this thread, by class name, and the numbers of new bills."""


class _Object(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)


@dataclass(frozen=True, slots=True)
class Side:
    """The company's half of a domain, or the user's."""

    tools_class: Any
    database: Any
    """The class of its database."""
    executes: Mapping[str, Execute]
    """Its tools by name."""

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """Describe its tools."""
        return tuple(described(name, execute) for name, execute in self.executes.items())


@dataclass(frozen=True, slots=True)
class Domain:
    """An imported domain."""

    agent: Side
    user: Side | None = None
    """None where users have no tools."""
    synchronise: Callable[[Any, Any], object] | None = None
    """What the package does to both sides' objects, the user's first, after every call."""

    @property
    def sides(self) -> tuple[Side, ...]:
        """The agent's, then the user's."""
        return (self.agent, self.user) if self.user else (self.agent,)

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """Both sides' tools, the agent's first."""
        return tuple(tool for side in self.sides for tool in side.tools)

    @property
    def executes(self) -> Mapping[str, Execute]:
        """Both sides' tools by name."""
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
"""Domain → for each side its class of tools, of its database, and the list of its tools."""
_SYNCHRONISED = ("telecom",)


def data_folder(domain: str) -> Path:
    """Return the folder of the package's own data of a domain.

    Raises:
        InputError: the package is not installed.
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
    """Return a domain, imported once.

    Raises:
        InputError: the package is not installed.
    """
    stand_ins = _stand_ins(_package())
    before = {module: sys.modules.get(module) for module in stand_ins}
    sys.modules.update(stand_ins)
    try:
        agent, *user = [_side(name, *parts) for parts in _SIDES[name]]
        synchronise = _named(name, "environment:Environment") if name in _SYNCHRONISED else None
        return Domain(agent, user[0] if user else None, synchronise)
    finally:
        for module, was in before.items():
            if was is None:
                del sys.modules[module]
            else:
                sys.modules[module] = was


@contextmanager
def calling(*objects: Any, numbers: Iterator[int] | None = None) -> Iterator[None]:
    """Let tools that are executed in here find these objects."""
    _now.objects = {type(each).__name__: each for each in objects}
    _now.numbers = numbers or count(1)
    try:
        yield
    finally:
        del _now.objects


def answer_of(
    execute: Execute, arguments: Mapping[str, Any], then: Callable[[], object]
) -> ToolResult:
    """Return what a tool says, after what follows every call; whatever either raises is said as well."""
    try:
        said = _completed(execute(**arguments))
        then()
        return Value({"result": said})
    except Exception as error:
        # As the original does.
        return refuse("tool_error", str(error)[:TEXT_CHARS_MAX] or type(error).__name__)


def _side(name: str, tools_class: str, database: str, tools: str) -> Side:
    module = import_module(f"{_ROOT}.{name}.{tools_class}")
    if hasattr(module, "uuid"):
        module.uuid = SimpleNamespace(  # type: ignore[attr-defined]
            uuid4=lambda: SimpleNamespace(hex=f"{next(_now.numbers):08x}")
        )
    makes = _named(name, tools)
    # The package puts a domain's name before some tools, which the original does not.
    executes = {make.__name__.removeprefix(f"{name}_"): make() for make in makes}
    return Side(getattr(module, tools_class), _named(name, database), executes)


def _named(domain_name: str, place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(import_module(f"{_ROOT}.{domain_name}.{module}"), attribute)


def _completed(work: Coroutine[Any, Any, str]) -> str:
    try:
        work.send(None)
    except StopIteration as end:
        return str(end.value)
    raise RuntimeError("a tool waits, which none of these domains' does")


def _package() -> Path:
    found = find_spec("inspect_evals")
    if found is None or not found.submodule_search_locations:
        raise InputError(f"tau2 needs the package inspect-evals; install it with: {INSTALL}")
    return Path(found.submodule_search_locations[0])


def _stand_ins(package: Path) -> dict[str, ModuleType]:
    def store_as(kind: type[Any], _instance: str | None = None) -> Any:
        return _now.objects[kind.__name__]

    folders = ["inspect_evals", _ROOT, *(f"{_ROOT}.{name}" for name in _SIDES)]
    made: dict[str, dict[str, Any]] = {
        "inspect_ai": {"__path__": []},
        "inspect_ai.model": {"Content": object, "ContentText": object},
        "inspect_ai.tool": {
            "Tool": object,
            "ToolError": type("ToolError", (Exception,), {}),
            "tool": _same,
        },
        "inspect_ai.util": {"StoreModel": _Object, "store_as": store_as},
        "toml": {"load": tomllib.load, "loads": tomllib.loads},
        **{name: {"__path__": [str(package.joinpath(*name.split(".")[1:]))]} for name in folders},
    }
    modules = {name: ModuleType(name) for name in made}
    for name, attributes in made.items():
        vars(modules[name]).update(attributes)
    return modules


def _same(make: Any) -> Any:
    return make


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

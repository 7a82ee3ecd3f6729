"""τ²-bench's telecom as the package ``inspect-evals`` carries it, without the framework it is made for.

The package's tools are used as they are. Of its framework they need four names, which stand here while they
are imported: a base of objects, a store of them, an error and a mark for tools. Objects are those of whoever
calls on this thread; what would be drawn by chance, names of new bills, is counted.
"""

from __future__ import annotations

import inspect
import sys
import tomllib
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from threading import local
from types import ModuleType, SimpleNamespace
from typing import Any

from pydantic import BaseModel, ConfigDict

from runner.core.errors import InputError

INSTALL = "pip install --no-deps 'inspect-evals==0.26.0'"
_TELECOM = "inspect_evals.tau2.telecom"
_now = local()
"""The objects of whoever calls on this thread, by class name, and the numbers of new bills."""

Execute = Callable[..., Coroutine[Any, Any, str]]


class _Object(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)


class Telecom:
    """The imported domain."""

    def __init__(self) -> None:
        tools, own = import_module(f"{_TELECOM}.tools"), import_module(f"{_TELECOM}.user_tools")
        self.agent_class: Any = import_module(f"{_TELECOM}.TelecomAgentTools").TelecomAgentTools
        self.user_class: Any = import_module(f"{_TELECOM}.TelecomUserTools").TelecomUserTools
        self.agent_database: Any = import_module(f"{_TELECOM}.data_model").TelecomDB
        self.user_database: Any = import_module(f"{_TELECOM}.user_data_model").TelecomUserDB
        self.environment: Any = import_module(f"{_TELECOM}.environment").Environment
        self.executes: dict[str, Execute] = {
            make.__name__: make() for make in (*tools.all_telecom_agent_tools, *own.all_telecom_user_tools)
        }
        """Both sides' tools by name, the agent's first: who works alone has them all."""
        import_module(f"{_TELECOM}.TelecomAgentTools").uuid = SimpleNamespace(  # type: ignore[attr-defined]
            uuid4=lambda: SimpleNamespace(hex=f"{next(_now.numbers):08x}")
        )


def data_folder() -> Path:
    """Return the folder of the package's own telecom data.

    Raises:
        InputError: the package is not installed.
    """
    return _package() / "tau2" / "data" / "domains" / "telecom"


@cache
def telecom() -> Telecom:
    """Return the domain, imported once.

    Raises:
        InputError: the package is not installed.
    """
    stand_ins = _stand_ins(_package())
    before = {name: sys.modules.get(name) for name in stand_ins}
    sys.modules.update(stand_ins)
    try:
        return Telecom()
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


@contextmanager
def calling(agent: Any, user: Any, numbers: count[int]) -> Iterator[None]:
    """Let tools that are executed in here find these objects."""
    _now.objects = {type(agent).__name__: agent, type(user).__name__: user}
    _now.numbers = numbers
    try:
        yield
    finally:
        del _now.objects


def completed(work: Coroutine[Any, Any, str]) -> str:
    """Return what a tool says; none of these waits for anything."""
    try:
        work.send(None)
    except StopIteration as end:
        return str(end.value)
    raise RuntimeError("a tool waits, which none of this domain does")


def parameters_of(execute: Execute) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments, as its signature has them."""
    words: Mapping[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
    given = inspect.signature(execute, eval_str=True).parameters
    properties = {
        name: {"type": words.get(each.annotation, "object" if "dict" in str(each.annotation) else "string")}
        for name, each in given.items()
    }
    required = [name for name, each in given.items() if each.default is inspect.Parameter.empty]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _package() -> Path:
    found = find_spec("inspect_evals")
    if found is None or not found.submodule_search_locations:
        raise InputError(f"tau2 needs the package inspect-evals; install it with: {INSTALL}")
    return Path(found.submodule_search_locations[0])


def _stand_ins(package: Path) -> dict[str, ModuleType]:
    def store_as(kind: type[Any], _instance: str | None = None) -> Any:
        return _now.objects[kind.__name__]

    made: dict[str, dict[str, Any]] = {
        "inspect_ai": {"__path__": []},
        "inspect_ai.model": {"Content": object, "ContentText": object},
        "inspect_ai.tool": {"Tool": object, "ToolError": type("ToolError", (Exception,), {}), "tool": _same},
        "inspect_ai.util": {"StoreModel": _Object, "store_as": store_as},
        "toml": {"load": tomllib.load, "loads": tomllib.loads},
        "inspect_evals": {"__path__": [str(package)]},
        "inspect_evals.tau2": {"__path__": [str(package / "tau2")]},
    }
    modules = {name: ModuleType(name) for name in made}
    for name, attributes in made.items():
        vars(modules[name]).update(attributes)
    return modules


def _same(make: Any) -> Any:
    return make

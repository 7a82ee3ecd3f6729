"""From the name of an agent to the agent."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from fumehood_agent.builtin import BUILTIN
from fumehood_agent.errors import UsageError
from fumehood_agent.scaffolds.table import WITH_MODEL

_PREFIX = "builtin:"
REPLAYING = ("oracle", "script")
"""Agents that are made with a list of calls."""


def load_agent(name: str, calls_file: str | None = None, model: str | None = None) -> Any:
    """Import and make the agent called ``name``.

    Args:
        name: ``builtin:NAME`` or ``module:Class``.
        calls_file: JSON file whose content the class is made with, where one is given.
        model: that a scaffold asks; no other agent has a use for it.

    Raises:
        UsageError: there is no such agent, the file cannot be read, or a scaffold has no model.
        Exception: whatever the agent's own module or class raises.
    """
    cls = load_class(name)
    if name.removeprefix(_PREFIX) in WITH_MODEL:
        if model is None:
            raise UsageError(f"{name} asks a model: name it with --model")
        return cls(_chat_model(model))
    needs_calls = name.removeprefix(_PREFIX) in REPLAYING
    if needs_calls and calls_file is None:
        raise UsageError(f"{name} replays a list of calls: name its file with --calls")
    return cls() if calls_file is None else cls(_read_json(calls_file))


def load_class(name: str) -> Callable[..., Any]:
    """Import the class of the agent called ``name``.

    Args:
        name: ``builtin:NAME`` or ``module:Class``.

    Raises:
        UsageError: there is no such agent.
        Exception: whatever the agent's own module raises.
    """
    return _load_class(_path_of(name))


def _path_of(name: str) -> str:
    if not name.startswith(_PREFIX):
        return name
    short = name.removeprefix(_PREFIX)
    known = {**BUILTIN, **WITH_MODEL}
    if short not in known:
        raise UsageError(f"no agent is called {short!r}; there are: {', '.join(known)}")
    return known[short]


def _chat_model(name: str) -> Any:
    # Imported here: an agent without a model has no use for it, and every start would pay.
    from fumehood_agent.scaffolds.chat_model import ChatModel

    return ChatModel(name)


def _load_class(path: str) -> Callable[..., Any]:
    module_name, _, class_name = path.partition(":")
    if not class_name or not all(part.isidentifier() for part in module_name.split(".")):
        raise UsageError(f"{path!r} names no agent; expected builtin:NAME or module:Class")
    if find_spec(module_name.partition(".")[0]) is None:
        raise UsageError(f"there is no module {module_name!r}")
    module = import_module(module_name)
    cls = getattr(module, class_name, None)
    if not callable(cls):
        raise UsageError(f"the module {module_name!r} has no class {class_name!r}")
    made: Callable[..., Any] = cls
    return made


def _read_json(path: str) -> Any:
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {error}") from error

"""Imports and creates the agent with a given name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from fumehood_agent.builtin import BUILTIN, REPLAYING
from fumehood_agent.errors import UsageError
from fumehood_agent.scaffolds.table import WITH_MODEL

_PREFIX = "builtin:"


def load_agent(
    name: str,
    calls_file: str | None = None,
    model: str | None = None,
    arguments: Mapping[str, Any] = {},
    model_settings: str = "{}",
) -> Any:
    """Import and create the agent ``name``.

    Args:
        name: ``builtin:NAME`` or ``module:Class``.
        calls_file: JSON file with the calls; its content is the argument of the class.
        model: for scaffolds; other agents ignore it.
        arguments: further keyword arguments of the class.
        model_settings: JSON object with the settings of the model that are not defaults.

    Raises:
        UsageError: there is no such agent, the file cannot be read, or a scaffold has no model.
        Exception: an exception of the agent's module or class.
    """
    cls = load_class(name)
    if name.removeprefix(_PREFIX) in WITH_MODEL:
        if model is None:
            raise UsageError(f"{name} needs a model; set it with --model")
        return cls(_chat_model(model, model_settings), **arguments)
    needs_calls = name.removeprefix(_PREFIX) in REPLAYING
    if needs_calls and calls_file is None:
        raise UsageError(f"{name} replays a list of calls; set its file with --calls")
    return cls(**arguments) if calls_file is None else cls(_read_json(calls_file))


def load_class(name: str) -> Callable[..., Any]:
    """Import the class of the agent ``builtin:NAME`` or ``module:Class``.

    Raises:
        UsageError: there is no such agent.
        Exception: an exception of the agent's module.
    """
    return _load_class(_path_of(name))


def _path_of(name: str) -> str:
    if not name.startswith(_PREFIX):
        return name
    short = name.removeprefix(_PREFIX)
    known = {**BUILTIN, **WITH_MODEL}
    if short not in known:
        raise UsageError(f"unknown agent {short!r}; available: {', '.join(known)}")
    return known[short]


def _chat_model(name: str, settings: str) -> Any:
    # Imported here, because only scaffolds need it and the import takes time.
    from fumehood_agent.scaffolds.chat_model import ChatModel
    from fumehood_agent.scaffolds.settings import ModelSettings

    return ChatModel(name, settings=ModelSettings.from_json(settings))


def _load_class(path: str) -> Callable[..., Any]:
    module_name, _, class_name = path.partition(":")
    if not class_name or not all(part.isidentifier() for part in module_name.split(".")):
        raise UsageError(f"{path!r} is not an agent; expected builtin:NAME or module:Class")
    if find_spec(module_name.partition(".")[0]) is None:
        raise UsageError(f"module {module_name!r} not found")
    module = import_module(module_name)
    cls = getattr(module, class_name, None)
    if not callable(cls):
        raise UsageError(f"module {module_name!r} has no class {class_name!r}")
    made: Callable[..., Any] = cls
    return made


def _read_json(path: str) -> Any:
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {error}") from error

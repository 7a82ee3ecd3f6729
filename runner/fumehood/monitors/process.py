"""The process of one monitor in one episode. It has no rights, and one socket to the service.

The service sends one JSON object at a time, and waits for the answer.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from fumehood.core.json_values import JsonObject
from fumehood.monitors.model import ModelMonitor
from fumehood.monitors.monitor import (
    Decision,
    Monitor,
    decide,
    facts_from_json,
    step_from_json,
)
from fumehood.monitors.rules import RuleMonitor
from fumehood.supervised.frames import receive_frame, send_frame

_SHOWN_CHARACTERS = 500


def serve(channel: socket.socket, arguments: JsonObject) -> None:
    """Make the monitor that the first message describes, and answer until the service closes."""
    opening = receive_frame(channel)
    if opening is None:
        return
    try:
        monitor = make_monitor(json.loads(opening))
        if isinstance(monitor, ModelMonitor):
            monitor.connect(lambda request: _ask(channel, request))
        needs_state = bool(getattr(monitor, "needs_state", False))
    except Exception as error:
        text = f"{type(error).__name__}: {error}"[:_SHOWN_CHARACTERS]
        _send(channel, {"failed": text})
        return
    _send(channel, {"needs_state": needs_state})
    while message := receive_frame(channel):
        _send(channel, _answer(monitor, json.loads(message)))


def make_monitor(settings: JsonObject) -> Monitor:
    """Return a new monitor.

    Args:
        settings: ``rules`` or ``policy``, the content of a rule file; ``model``, the name of a
            model; or ``class``, the name of a class, with ``source`` or ``module``, and
            ``arguments``.

    Raises:
        Exception: the settings, or the code that they name, are not valid.
    """
    if "rules" in settings or "policy" in settings:
        return RuleMonitor(settings)
    if "model" in settings:
        return ModelMonitor(settings)
    name = str(settings["class"])
    make: Callable[..., Any] | None = getattr(_module(settings), name, None)
    if make is None:
        raise ValueError(f"there is no class {name}")
    arguments = settings.get("arguments")
    monitor: Monitor = make(**arguments) if isinstance(arguments, dict) else make()
    missing = [each for each in ("begin", "before", "after") if not hasattr(monitor, each)]
    if missing:
        raise ValueError(f"{name} has no method {missing[0]}")
    return monitor


def _module(settings: JsonObject) -> ModuleType:
    if "source" not in settings:
        return import_module(str(settings["module"]))
    module = ModuleType("monitor")
    exec(compile(str(settings["source"]), str(settings["file"]), "exec"), vars(module))
    return module


def _answer(monitor: Monitor, question: JsonObject) -> JsonObject:
    match question:
        case {"begin": dict(facts)}:
            monitor.begin(facts_from_json(facts))
            return {}
        case {"step": dict(step)}:
            decision = decide(monitor, step_from_json(step))
            if not isinstance(decision, Decision):
                raise TypeError(f"a monitor must return a Decision, not {type(decision).__name__}")
            return decision.to_json()
    raise ValueError("not a question")


def _ask(channel: socket.socket, request: JsonObject) -> JsonObject:
    """Return the response of a model; the service sends the request."""
    _send(channel, {"ask": request})
    response = receive_frame(channel)
    if response is None:
        raise OSError("the service does not answer")
    answer: JsonObject = json.loads(response)
    return answer


def _send(channel: socket.socket, message: JsonObject) -> None:
    send_frame(channel, json.dumps(message).encode("ascii"))

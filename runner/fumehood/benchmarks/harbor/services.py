"""Reads the services of a Harbor task from ``environment/docker-compose.yaml``.

Supports a part of Compose and refuses everything else by name. Source: Compose specification,
05-services.md.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from yaml import YAMLError

from fumehood.benchmarks.harbor.steps import RETRIES_MAX, TIME_MAX_S
from fumehood.benchmarks.harbor.unsupported import Unsupported, checked_variables
from fumehood.benchmarks.shared.yaml_text import load_yaml
from fumehood.core.json_values import Json, JsonObject

FILE = "docker-compose.yaml"
MAIN = "main"
"""The service that is the workspace."""
SERVICES_MAX = 8
_MAIN_KEYS = frozenset({"build", "depends_on", "environment", "expose"})
_KEYS = frozenset({*_MAIN_KEYS, "command", "healthcheck", "image"})
_CHECK_KEYS = {
    "interval": ("interval_s", 30.0),
    "timeout": ("timeout_s", 30.0),
    "start_period": ("start_period_s", 0.0),
    "start_interval": ("start_interval_s", 5.0),
}
_VARIABLE = re.compile(r"\$\{\w+(?::?-(?P<default>[^}]*))?\}|\$\w+")
_DURATION = re.compile(r"(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?(?:(\d+)ms)?")
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}")


def services_of(folder: Path) -> tuple[list[JsonObject], dict[str, str]]:
    """Return the services of a task, those that others need first, and the variables of its
    workspace.

    Args:
        folder: of the task.

    Raises:
        Unsupported: there is another Compose file, or a setting that is not supported.
    """
    files = sorted((folder / "environment").glob("*compose*.y*ml"))
    if not files:
        return [], {}
    if [file.name for file in files] != [FILE]:
        raise Unsupported(f"environment/{next(f.name for f in files if f.name != FILE)}")
    if files[0].is_symlink():
        raise Unsupported(f"{FILE} is a link: copy the file")
    try:
        content = load_yaml(files[0].read_text("utf-8"))
    except (RecursionError, ValueError, YAMLError) as error:
        raise Unsupported(f"{FILE}: {' '.join(str(error).split())}") from None
    table = _table(content, "", {"name", "services", "version"})
    services = {
        str(name): _table(one or {}, str(name), _MAIN_KEYS if name == MAIN else _KEYS)
        for name, one in _table(table.get("services") or {}, "services").items()
    }
    main = services.pop(MAIN, {})
    if main.get("build", ".") not in (".", {"context": "."}, {"context": "${CONTEXT_DIR}"}):
        raise Unsupported(f"{FILE}: {MAIN}.build")
    if len(services) > SERVICES_MAX:
        raise Unsupported(f"{FILE}: {len(services)} services, of at most {SERVICES_MAX}")
    parsed = {name: _service(folder, name, one) for name, one in services.items()}
    for name, one in {MAIN: main, **services}.items():
        if unknown := sorted({*_needed(one)} - set(parsed)):
            raise Unsupported(f"{FILE}: {name}.depends_on {unknown[0]}")
    return [parsed[name] for name in _ordered(services)], _environment(main, MAIN)


def _service(folder: Path, name: str, one: Mapping[str, Any]) -> JsonObject:
    if _NAME.fullmatch(name) is None:
        raise Unsupported(f"{FILE}: the name {name!r}")
    build, image = one.get("build"), one.get("image")
    if (build is None) == (image is None):
        raise Unsupported(f"{FILE}: {name} without exactly one of build and image")
    context = build.get("context") if isinstance(build, dict) and len(build) == 1 else build
    top = folder.resolve() / "environment"
    if image is None:
        place = (top / str(context)).resolve()
        if not isinstance(context, str) or not place.is_relative_to(top):
            raise Unsupported(f"{FILE}: {name}.build other than a folder below environment")
        if not (place / "Dockerfile").is_file():
            raise Unsupported(f"{FILE}: {name}.build without a Dockerfile")
        context = str(place.relative_to(top))
    command = one.get("command", [])
    if not isinstance(command, str | list | None):
        raise Unsupported(f"{FILE}: {name}.command, which is no text and no list")
    try:
        words = shlex.split(command) if isinstance(command, str) else [*map(str, command or [])]
    except ValueError as error:
        raise Unsupported(f"{FILE}: {name}.command: {error}") from None
    return {
        "name": name,
        "folder": context if image is None else "",
        "image": "" if image is None else _filled(str(image), name),
        "command": [*words],
        "environment": {**_environment(one, name)},
        "healthcheck": _healthcheck(one.get("healthcheck") or {}, name),
    }


def _healthcheck(check: Any, name: str) -> JsonObject:
    check = _table(check, f"{name}.healthcheck", {"test", "retries", *_CHECK_KEYS})
    test = check.get("test", [])
    words: list[Json] = [*map(str, test)] if isinstance(test, list) else ["CMD-SHELL", str(test)]
    if not words or words == ["NONE"]:
        return {}
    if words[0] not in ("CMD", "CMD-SHELL"):
        raise Unsupported(f"{FILE}: {name}.healthcheck.test")
    command = words[1:] if words[0] == "CMD" else ["/bin/sh", "-c", *words[1:]]
    times = {
        key: _seconds(check[own], name) if own in check else default
        for own, (key, default) in _CHECK_KEYS.items()
    }
    retries = check.get("retries", 3)
    if type(retries) is not int or not 1 <= retries <= RETRIES_MAX:
        raise Unsupported(f"{FILE}: {name}.healthcheck with the retries {retries!r}")
    return {"command": command, "retries": retries, **times}


def _seconds(value: Any, name: str) -> float:
    found = _DURATION.fullmatch(str(value))
    if not str(value) or found is None:
        raise Unsupported(f"{FILE}: {name}.healthcheck with the time {value!r}")
    minutes, seconds, ms = (float(part or 0) for part in found.groups())
    if (time_s := minutes * 60 + seconds + ms / 1000) > TIME_MAX_S:
        most = f"of at most {TIME_MAX_S} s"
        raise Unsupported(f"{FILE}: {name}.healthcheck with the time {value!r}, {most}")
    return time_s


def _environment(one: Mapping[str, Any], name: str) -> dict[str, str]:
    given = one.get("environment") or {}
    if not isinstance(given, list | dict):
        raise Unsupported(f"{FILE}: {name}.environment, which is no list and no mapping")
    pairs = (
        (str(text).partition("=")[::2] for text in given)
        if isinstance(given, list)
        else ((str(key), "" if value is None else str(value)) for key, value in given.items())
    )
    filled = {key: _filled(value, name) for key, value in pairs}
    return checked_variables(filled, f"{FILE}: {name}.environment")


def _filled(text: str, name: str) -> str:
    """Return a text with the defaults of its variables; no variable of the host reaches a box."""

    def default(match: re.Match[str]) -> str:
        if match["default"] is None:
            raise Unsupported(f"{FILE}: a variable of the host in {name}")
        return str(match["default"])

    return _VARIABLE.sub(default, text.replace("$$", "\0")).replace("\0", "$")


def _needed(one: Mapping[str, Any]) -> Iterator[str]:
    given = one.get("depends_on") or ()
    # A text would be read letter by letter.
    yield from map(str, given if isinstance(given, list | dict | tuple) else (given,))


def _ordered(services: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the names of services, each after those that it depends on."""
    ordered: list[str] = []
    while left := [name for name in services if name not in ordered]:
        ready = [name for name in left if set(_needed(services[name])) <= {*ordered}]
        if not ready:
            raise Unsupported(f"{FILE}: services that depend on each other: {', '.join(left)}")
        ordered += ready
    return ordered


def _table(value: Any, name: str, known: frozenset[str] | set[str] | None = None) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Unsupported(f"{FILE}: {name or 'its content'} is no table")
    if known is not None and (unknown := sorted(map(str, set(value) - known))):
        raise Unsupported(f"{FILE}: {name and f'{name}.'}{unknown[0]}")
    return value

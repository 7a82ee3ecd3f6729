"""Where τ²-bench's telecom data lies: in the package, or in a folder that the user names."""

from __future__ import annotations

import gzip
import json
import tomllib
from pathlib import Path
from typing import Any

from runner.benchmarks.reading import Place, Problem, Unreadable
from runner.core.json_values import JsonObject

SPLIT = "base"
"""What is published as the benchmark, of tasks that are made in thousands."""
TASKS = ("tasks.json", "tasks.json.gz", "tasks_small.json")
ENDINGS = (".md", ".txt")


def read_tasks(folder: Path) -> tuple[Path, list[Any]]:
    """Return the file of the tasks, and those of the published split where it says which these are.

    Raises:
        Unreadable: there is no such file, or it holds something else.
    """
    path = _first(folder, TASKS)
    tasks = _json(path)
    if not isinstance(tasks, list):
        raise Unreadable(Place(path), Problem.INVALID_RECORD, "must be a list of tasks")
    splits = folder / "split_tasks.json"
    chosen = _json(splits).get(SPLIT) if splits.is_file() and path.name != TASKS[-1] else None
    return path, [task for task in tasks if chosen is None or task.get("id") in chosen]


def read_databases(folder: Path) -> JsonObject:
    """Return both databases as a world's state holds them.

    Raises:
        Unreadable: one is not there, or is no TOML.
    """
    return {"agent": _toml(folder / "db.toml"), "user": _toml(folder / "user_db.toml")}


def read_policy(folder: Path) -> str:
    """Return what an agent who works alone is told to keep to.

    Raises:
        Unreadable: a part of it is not there.
    """
    main = _text(_first(folder, [f"main_policy_solo{ending}" for ending in ENDINGS]))
    manual = _text(_first(folder, [f"tech_support_manual{ending}" for ending in ENDINGS]))
    return f"<main_policy>\n{main}\n</main_policy>\n<tech_support_policy>\n{manual}\n</tech_support_policy>"


def _first(folder: Path, names: list[str] | tuple[str, ...]) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise Unreadable(Place(folder), Problem.NOT_FOUND, f"holds none of {', '.join(names)}")


def _json(path: Path) -> Any:
    try:
        return json.loads(_text(path))
    except ValueError as error:
        raise Unreadable(Place(path), Problem.INVALID_JSON, f"is not JSON: {error}") from None


def _toml(path: Path) -> JsonObject:
    try:
        # A date of TOML is text in JSON, as which the package reads it just as well.
        found: JsonObject = json.loads(json.dumps(tomllib.loads(_text(path)), default=str))
    except ValueError as error:
        raise Unreadable(Place(path), Problem.INVALID_RECORD, f"is not TOML: {error}") from None
    return found


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
        return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8")
    except (OSError, ValueError) as error:
        raise Unreadable(Place(path), Problem.NOT_A_FILE, f"cannot be read: {error}") from None

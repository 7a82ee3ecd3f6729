"""Where τ²-bench's tasks and policies lie: in the package, or in a folder that the user names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from fumehood.benchmarks.reading import Place, Problem, Unreadable, read_json, read_text

SPLIT = "base"  # What is published as the benchmark, of tasks that are made in thousands.
TASKS = ("tasks.json", "tasks.json.gz", "tasks_small.json")
_COMPONENT = re.compile(r"\{\{component:(\w+)\}\}")


def read_tasks(folder: Path) -> tuple[Path, list[Any]]:
    """Return the file of the tasks, and those of the published split where it says which these are.

    Raises:
        Unreadable: there is no such file, or it holds something else.
    """
    path = _first(folder, TASKS)
    tasks = read_json(path)
    if not isinstance(tasks, list) or not tasks:
        raise Unreadable(Place(path), Problem.INVALID_RECORD, "must be a list of tasks")
    splits = folder / "split_tasks.json"
    chosen = read_json(splits).get(SPLIT) if splits.is_file() and path.name != TASKS[-1] else None
    return path, [task for task in tasks if chosen is None or task.get("id") in chosen]


def read_policy(folder: Path, *, solo: bool) -> str:
    """Return what an agent is told to keep to; of telecom's two the one for who works alone, if ``solo``.

    Raises:
        Unreadable: a part of it is not there.
    """
    if (folder / "prompts").is_dir():
        return _searching(folder / "prompts")
    if not any(folder.glob("tech_support_manual.*")):
        return _policy(folder, "policy")
    main = _policy(folder, "main_policy_solo" if solo else "main_policy")
    manual = _policy(folder, "tech_support_manual")
    return f"<main_policy>\n{main}\n</main_policy>\n<tech_support_policy>\n{manual}\n</tech_support_policy>"


def _searching(prompts: Path) -> str:
    parts = prompts / "components"
    return _COMPONENT.sub(
        lambda part: read_text(parts / f"{part[1]}.md"), read_text(prompts / "grep_only.md")
    )


def _policy(folder: Path, stem: str) -> str:
    return read_text(_first(folder, (f"{stem}.md", f"{stem}.txt")))


def _first(folder: Path, names: tuple[str, ...]) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise Unreadable(Place(folder), Problem.NOT_FOUND, f"holds none of {', '.join(names)}")

"""Memories that an agent has written: BFCL's own snapshots, or what ``fumehood show --json`` prints."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fumehood.benchmarks.bfcl.memory_world import EMPTY, opened_memory
from fumehood.benchmarks.reading import Place, Problem, Unreadable, read_records
from fumehood.core.errors import InputError, SpecError
from fumehood.core.json_values import JsonObject


def memories(folder: Path, class_name: str, scenarios: Iterable[str]) -> dict[str, JsonObject]:
    """Return what is remembered when the questions are asked, by scenario.

    Args:
        folder: holds for each scenario ``SCENARIO_final.json``, as BFCL leaves it in ``memory_snapshot``, or
            ``SCENARIO.json``, the episode of that conversation as ``fumehood show --json`` prints it.
        class_name: of BFCL.
        scenarios: their names.

    Raises:
        InputError: one is missing, or cannot be used.
    """
    return {name: {class_name: _memory(folder, class_name, name)} for name in scenarios}


def _memory(folder: Path, class_name: str, scenario: str) -> JsonObject:
    names = (f"{scenario}_final.json", f"{scenario}.json")
    path = next((folder / name for name in names if (folder / name).is_file()), None)
    if path is None:
        raise InputError(
            f"{folder} holds neither {names[0]} nor {names[1]}: no memory of that scenario"
        )
    value = next((record.value for record in read_records(path)), None)
    content = value
    if isinstance(value, dict) and isinstance(value.get("events"), list):
        content = _final_state(value["events"]).get(class_name)
    try:
        opened_memory(class_name, content)
    except SpecError as error:
        raise Unreadable(Place(path), Problem.INVALID_RECORD, str(error)) from None
    assert isinstance(content, dict)
    return {name: content[name] for name in EMPTY[class_name]}


def _final_state(events: list[Any]) -> JsonObject:
    closed = [each for each in events if isinstance(each, dict) and each.get("kind") == "closed"]
    state = closed[-1].get("final_state") if closed else None
    return state if isinstance(state, dict) else {}

"""The files of a checkout: lists of tasks, and for every environment its Python and its tools."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from fumehood.benchmarks.reading import Place, Placed, Problem, Unreadable, read_json, read_text
from fumehood.benchmarks.records import validated
from fumehood.benchmarks.safetybench.record import Record, Tool
from fumehood.core.json_values import JsonObject

LISTS = {"released": "released_data.json", "sampled": "sampled_data.json"}


def read_records(checkout: Path, which: str) -> list[Placed[Record]]:
    """Return the tasks of a list.

    Raises:
        Unreadable: it is not there, or holds something else.
    """
    path = checkout / "data" / LISTS[which]
    records = read_json(path)
    if not isinstance(records, list) or not records:
        raise Unreadable(Place(path), Problem.INVALID_RECORD, "must be a list of tasks")
    return [validated(Placed(record, Place(path)), Record) for record in records]


@cache
def read_environment(checkout: Path, name: str) -> tuple[str, tuple[JsonObject, ...]]:
    """Return an environment's source and its tools.

    Raises:
        Unreadable: a file is not there, or describes no tools.
    """
    folder = checkout / "environments"
    if not name.isidentifier():
        raise Unreadable(
            Place(folder), Problem.INVALID_RECORD, f"{name!r} cannot name an environment"
        )
    path = folder / f"{name}.json"
    tools = read_json(path)
    if not isinstance(tools, list):
        raise Unreadable(Place(path), Problem.INVALID_RECORD, "must be a list of tools")
    checked = [validated(Placed(tool, Place(path)), Tool).value.model_dump() for tool in tools]
    return read_text(folder / f"{name}.py"), tuple(checked)

"""BFCL's memory backends as a world."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from fumehood.benchmarks.bfcl.package import MEMORIES, class_documents, package_folder
from fumehood.benchmarks.bfcl.world import SOURCES, Bfcl
from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json, JsonObject, copy_object

EMPTY: dict[str, JsonObject] = {
    "MemoryAPI_kv": {"core_memory": {}, "archival_memory": {}},
    "MemoryAPI_rec_sum": {"memory": ""},
}
"""Class → its attributes when nothing is remembered."""
_UTILS = "bfcl_eval.utils"
_NAMES_OF_FILES = (
    "get_directory_structure_by_id",
    "is_first_memory_prereq_entry",
    "is_memory_prereq",
)


def preload() -> None:
    """Import both memories and read their documents, before a process may no longer read them."""
    for class_name in MEMORIES:
        _memory_class(class_name)
        class_documents(class_name)


class BfclMemory(Bfcl):
    """A world that is nothing but a memory."""

    toolset_id = "bfcl_v4_memory"

    @staticmethod
    def _made(state: JsonObject) -> dict[str, Any]:
        given = state.get("memory")
        if not isinstance(given, dict) or len(given) != 1:
            raise SpecError(
                "initial_state.memory", f"must be one of {', '.join(MEMORIES)} with its content"
            )
        return {
            class_name: opened_memory(class_name, content) for class_name, content in given.items()
        }


def opened_memory(class_name: str, content: Json) -> Any:
    """Return one of BFCL's memories that remembers ``content``.

    Args:
        class_name: of BFCL.
        content: values of the attributes in ``EMPTY``.

    Raises:
        SpecError: there is no such memory, or it cannot hold that.
        InputError: BFCL is not installed.
    """
    where = "initial_state.memory"
    if class_name not in EMPTY:
        raise SpecError(where, f"there is no memory {class_name!r}")
    memory = _memory_class(class_name)()
    for name, empty in EMPTY[class_name].items():
        given = content.get(name) if isinstance(content, dict) else None
        if type(given) is not type(empty):
            raise SpecError(f"{where}.{class_name}.{name}", f"must be like {empty!r}")
        if isinstance(given, dict) and not all(isinstance(value, str) for value in given.values()):
            raise SpecError(f"{where}.{class_name}.{name}", "must have texts under its keys")
        setattr(memory, name, copy_object(given) if isinstance(given, dict) else given)
    return memory


def _memory_class(class_name: str) -> Any:
    package_folder("overrides", "rank_bm25")
    # BFCL's helpers make folders beside the package when they are imported, and are for files alone.
    is_ours = _UTILS not in sys.modules
    if is_ours:
        sys.modules[_UTILS] = ModuleType(_UTILS)
        vars(sys.modules[_UTILS]).update(dict.fromkeys(_NAMES_OF_FILES))
    try:
        return getattr(import_module(f"{SOURCES}.{MEMORIES[class_name]}"), class_name)
    finally:
        if is_ours:
            del sys.modules[_UTILS]

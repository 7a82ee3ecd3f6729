"""BFCL's unmodified agent memories: a key-value store, one text, or texts found by embeddings.

Initial state: ``memory``, a class of BFCL with its content. Later state: the class with its new
content. BFCL keeps memories in files between conversations; here no file is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fumehood.benchmarks.bfcl.imports import UTILS, import_with
from fumehood.benchmarks.bfcl.package import (
    MEMORIES,
    VECTOR,
    class_documents,
    package_folder,
)
from fumehood.benchmarks.bfcl.world import SOURCES, Bfcl
from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json, JsonObject, copy_object

EMPTY: dict[str, JsonObject] = {
    "MemoryAPI_kv": {"core_memory": {}, "archival_memory": {}},
    "MemoryAPI_rec_sum": {"memory": ""},
    "MemoryAPI_vector": {
        "core_memory": {"next_id": 0, "store": {}},
        "archival_memory": {"next_id": 0, "store": {}},
    },
}
"""Class → the attributes of an empty memory."""

Embed = Callable[[Any], Any]
"""Takes a text or a list of texts; returns an array with one vector for each."""


def preload() -> None:
    """Import both memories and their documents while this process can still read them."""
    for class_name in MEMORIES:
        _memory_class(class_name)
        class_documents(class_name)


class BfclMemory(Bfcl):
    """A world that consists of one memory."""

    toolset_id = "bfcl_v4_memory"

    @staticmethod
    def _create_objects(state: JsonObject) -> dict[str, Any]:
        memory = state.get("memory")
        if not isinstance(memory, dict) or len(memory) != 1:
            raise SpecError("initial_state.memory", f"must have one key of {', '.join(MEMORIES)}")
        return {
            class_name: open_memory(class_name, content) for class_name, content in memory.items()
        }


def open_memory(class_name: str, content: Json, embed: Embed | None = None) -> Any:
    """Return one of BFCL's memories with the given content.

    Args:
        class_name: A key of ``EMPTY``.
        content: Values of the attributes there.
        embed: For the memory with embeddings; by default, equal words count.

    Raises:
        SpecError: The class is unknown or the content is invalid.
        InputError: BFCL is not installed.
    """
    where = "initial_state.memory"
    if class_name not in EMPTY:
        raise SpecError(where, f"unknown memory {class_name!r}")
    memory = _memory_class(class_name)()
    if class_name in VECTOR:
        _fill_stores(memory, content, embed, where)
        return memory
    for name, empty in EMPTY[class_name].items():
        value = content.get(name) if isinstance(content, dict) else None
        if type(value) is not type(empty):
            raise SpecError(f"{where}.{class_name}.{name}", f"must have the type of {empty!r}")
        if isinstance(value, dict) and not all(isinstance(text, str) for text in value.values()):
            raise SpecError(f"{where}.{class_name}.{name}", "must have text values")
        setattr(memory, name, copy_object(value) if isinstance(value, dict) else value)
    return memory


def _fill_stores(memory: Any, content: Json, embed: Embed | None, where: str) -> None:
    for name in EMPTY["MemoryAPI_vector"]:
        match content.get(name) if isinstance(content, dict) else None:
            case {"next_id": int(next_id), "store": dict(texts)} if all(
                key.isdecimal() and int(key) < next_id and isinstance(text, str)
                for key, text in texts.items()
            ):
                store = getattr(memory, name)
                if embed is not None:
                    store._embed = embed
                store.load_from_snapshot({"next_id": next_id, "store": texts})
            case _:
                raise SpecError(
                    f"{where}.MemoryAPI_vector.{name}",
                    "must have next_id and store, an object of texts by smaller numbers",
                )


def _memory_class(class_name: str) -> Any:
    package_folder("overrides", "rank_bm25")
    module = import_with(f"{SOURCES}.{(MEMORIES | VECTOR)[class_name]}", _replaced(class_name))
    return getattr(module, class_name)


def _replaced(class_name: str) -> dict[str, dict[str, Any]]:
    if class_name not in VECTOR:
        return {UTILS: {}}
    from fumehood.benchmarks.bfcl.vectors import FlatIndex, HashedWords

    return {
        UTILS: {},
        "faiss": {"IndexFlatIP": FlatIndex, "IndexIDMap": FlatIndex},
        "sentence_transformers": {"SentenceTransformer": lambda *_, **__: HashedWords()},
    }

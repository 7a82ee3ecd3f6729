"""Compares two states leaf by leaf."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fumehood.core.json_values import Json, JsonObject, canonical_json

Path = tuple[str | int, ...]
"""Keys from the root. An entry of a list is named by its ``id`` or ``name`` if all entries have one
and all are different, else by its position."""


@dataclass(frozen=True, slots=True)
class Change:
    """A leaf that differs. Values are canonical JSON text; None means no such leaf."""

    path: Path
    before: str | None
    after: str | None


def changes(before: Json, after: Json) -> tuple[Change, ...]:
    """Return every leaf that differs, was added or was removed, in the order of their paths.

    A leaf is any value except an object or a list. 1, 1.0 and true differ.
    """
    old: dict[Path, str] = {}
    new: dict[Path, str] = {}
    _add_leaves(before, (), old)
    _add_leaves(after, (), new)
    changed = [path for path, text in new.items() if old.get(path) != text]
    removed = [path for path in old if path not in new and not _is_covered_by(new, path)]
    paths = sorted({*changed, *removed}, key=_order)
    return tuple(Change(path, old.get(path), new.get(path)) for path in paths)


def changed_paths(before: Json, after: Json) -> tuple[Path, ...]:
    """Return the path of every leaf that differs, was added or was removed, in order."""
    return tuple(change.path for change in changes(before, after))


def is_below(path: Path, top: Sequence[str | int]) -> bool:
    """Return whether ``path`` is ``top`` or below it."""
    return path[: len(top)] == tuple(top)


def _add_leaves(value: Json, path: Path, leaves: dict[Path, str]) -> None:
    if isinstance(value, dict | list):
        # An empty container has no leaves, so a world may create one.
        for step, entry in _entries(value):
            _add_leaves(entry, (*path, step), leaves)
    else:
        leaves[path] = canonical_json(value)


def _entries(value: JsonObject | list[Json]) -> Iterable[tuple[str | int, Json]]:
    if isinstance(value, dict):
        return value.items()
    return zip(_names(value) or range(len(value)), value, strict=True)


def _names(entries: Sequence[Json]) -> list[str]:
    for key in ("id", "name"):
        names = [entry.get(key) for entry in entries if isinstance(entry, dict)]
        texts = [name for name in names if isinstance(name, str)]
        if len(set(texts)) == len(entries):
            return texts
    return []


def _is_covered_by(leaves: Mapping[Path, str], path: Path) -> bool:
    """Return whether ``leaves`` contains a path above or below ``path``, which replaced it."""
    return any(is_below(leaf, path) or is_below(path, leaf) for leaf in leaves)


def _order(path: Path) -> tuple[str, ...]:
    return tuple(str(step) for step in path)

"""What differs between two snapshots: settings, and documents by id."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from fumehood_snapshots.documents.document import Document
from fumehood_snapshots.documents.store import DocumentStore
from fumehood_snapshots.format.manifest import Manifest

COMPARED = tuple(each.name for each in fields(Document) if each.name != "id")


@dataclass(frozen=True, slots=True)
class ChangedDocument:
    """A document that both have, but not alike."""

    id: str
    parts: tuple[str, ...]
    """What differs, such as ``text``."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Everything in which two snapshots differ; equal ones give an empty one."""

    settings: dict[str, tuple[Any, Any]]
    """Dotted name → left and right."""
    only_left: tuple[str, ...]
    only_right: tuple[str, ...]
    changed: tuple[ChangedDocument, ...]

    def __bool__(self) -> bool:
        return bool(self.settings or self.only_left or self.only_right or self.changed)


def compare(
    left: tuple[Manifest, DocumentStore], right: tuple[Manifest, DocumentStore]
) -> Difference:
    """Compare two snapshots, document by document in the order of their ids."""
    only: tuple[list[str], list[str]] = ([], [])
    changed = []
    for ours, theirs in _paired(left[1], right[1]):
        if ours is None or theirs is None:
            present = ours or theirs
            assert present is not None
            only[ours is None].append(present.id)
        elif ours != theirs:
            parts = tuple(name for name in COMPARED if getattr(ours, name) != getattr(theirs, name))
            changed.append(ChangedDocument(ours.id, parts))
    settings = _changed_settings(_settings(left[0]), _settings(right[0]))
    return Difference(settings, tuple(only[0]), tuple(only[1]), tuple(changed))


def _paired(
    left: DocumentStore, right: DocumentStore
) -> Iterator[tuple[Document | None, Document | None]]:
    """Walk both stores, which are sorted by id, side by side."""
    here, there = 0, 0
    while here < len(left) or there < len(right):
        ours = left[here] if here < len(left) else None
        theirs = right[there] if there < len(right) else None
        if theirs is None or (ours is not None and ours.id < theirs.id):
            yield ours, None
            here += 1
        elif ours is None or theirs.id < ours.id:
            yield None, theirs
            there += 1
        else:
            yield ours, theirs
            here, there = here + 1, there + 1


def _settings(manifest: Manifest) -> dict[str, Any]:
    """Return what decides how a snapshot answers, flat; hashes and counts follow from it."""
    whole = manifest.model_dump(
        mode="json",
        include={
            "name",
            "schema_version",
            "analysis",
            "ranking",
            "search",
            "provenance",
            "licences",
        },
    )
    flat: dict[str, Any] = {}
    for name, value in whole.items():
        if isinstance(value, dict):
            flat.update({f"{name}.{part}": inner for part, inner in value.items()})
        else:
            flat[name] = value
    return flat


def _changed_settings(left: dict[str, Any], right: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    names = sorted(left.keys() | right.keys())
    return {
        name: (left.get(name), right.get(name))
        for name in names
        if left.get(name) != right.get(name)
    }

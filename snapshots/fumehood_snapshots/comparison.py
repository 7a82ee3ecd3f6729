"""Compares two snapshots: settings, and documents by ID."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from fumehood_snapshots.documents.document import Document
from fumehood_snapshots.documents.store import DocumentStore
from fumehood_snapshots.format.manifest import Manifest

COMPARED = tuple(field.name for field in fields(Document) if field.name != "id")


@dataclass(frozen=True, slots=True)
class ChangedDocument:
    """A document that differs between the snapshots."""

    id: str
    parts: tuple[str, ...]
    """Names of differing attributes, such as ``text``."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The differences of two snapshots; empty if they are equal."""

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
    """Compare two snapshots, document by document in the order of IDs."""
    only: tuple[list[str], list[str]] = ([], [])
    changed = []
    for left_document, right_document in _paired(left[1], right[1]):
        if left_document is None or right_document is None:
            present = left_document or right_document
            assert present is not None
            only[left_document is None].append(present.id)
        elif left_document != right_document:
            parts = tuple(
                name
                for name in COMPARED
                if getattr(left_document, name) != getattr(right_document, name)
            )
            changed.append(ChangedDocument(left_document.id, parts))
    settings = _changed_settings(_settings(left[0]), _settings(right[0]))
    return Difference(settings, tuple(only[0]), tuple(only[1]), tuple(changed))


def _paired(
    left: DocumentStore, right: DocumentStore
) -> Iterator[tuple[Document | None, Document | None]]:
    """Iterate over both stores, which are sorted by ID, in parallel."""
    left_position, right_position = 0, 0
    while left_position < len(left) or right_position < len(right):
        left_document = left[left_position] if left_position < len(left) else None
        right_document = right[right_position] if right_position < len(right) else None
        if right_document is None or (
            left_document is not None and left_document.id < right_document.id
        ):
            yield left_document, None
            left_position += 1
        elif left_document is None or right_document.id < left_document.id:
            yield None, right_document
            right_position += 1
        else:
            yield left_document, right_document
            left_position, right_position = left_position + 1, right_position + 1


def _settings(manifest: Manifest) -> dict[str, Any]:
    """Return the settings that determine search results, flattened."""
    included = {"name", "schema_version", "analysis", "ranking", "search", "provenance", "licences"}
    settings = manifest.model_dump(mode="json", include=included)
    flat: dict[str, Any] = {}
    for name, value in settings.items():
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

"""Databases of τ²-bench's companies. A state lists only the differences from a published file.

A file has megabytes and a conversation changes few values. Files are therefore read once per
process, records are parsed on first access, and a state contains a list of changed leaves. Two
databases over one file are equal exactly if their lists are equal.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from fumehood.benchmarks.tau2.package import data_folder, domain
from fumehood.core.errors import SpecError
from fumehood.core.json_values import Json, JsonObject, canonical_json, copy_json

FILES = ("db.json", "db.json.gz")
Change = JsonObject
"""``path`` (keys from the root to the leaf) and ``value``, which is absent for a removed leaf."""


class Database:
    """The content of a file, which is never changed."""

    def __init__(self, raw: bytes) -> None:
        self.tables: JsonObject = json.loads(raw)
        # The published file and the package's file differ in the final line break.
        self.digest = sha256(raw.strip()).hexdigest()


class Records(dict[str, Any]):
    """A table whose records are parsed from JSON on first access."""

    def __init__(self, kind: Any, published: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        """Parse only the changed records.

        Args:
            kind: Class of a record.
            published: The published records by key, as JSON.
            now: The current records by key, as JSON.
        """
        super().__init__(now)
        self._kind = kind
        self._published = published
        self._texts: dict[str, str] = {}
        for key, record in now.items():
            if record is not published.get(key):
                self[key]

    def __getitem__(self, key: str) -> Any:
        """Return a record, parsed if necessary."""
        record = super().__getitem__(key)
        if isinstance(record, dict):
            published = self._published.get(key)
            parsed = self._kind.model_validate(record)
            first = (
                parsed
                if record is published or published is None
                else self._kind.model_validate(published)
            )
            self._texts[key] = first.model_dump_json() if published is not None else ""
            super().__setitem__(key, record := parsed)
        return record

    def __setitem__(self, key: str, record: Any) -> None:
        """Replace a record. The old one is parsed first, so that the difference is known."""
        if key in self:
            self[key]
        self._texts.setdefault(key, "")
        super().__setitem__(key, record)

    def get(self, key: str, default: Any = None) -> Any:
        """Return a record or the default."""
        try:
            return self[key]
        except KeyError:
            return default

    def values(self) -> Any:
        """Return all records."""
        self._parse_all()
        return super().values()

    def items(self) -> Any:
        """Return all records by key."""
        self._parse_all()
        return super().items()

    def changes(self, name: str) -> Iterator[Change]:
        """Yield the differences from the published table."""
        for key in sorted({*self._texts, *(self._published.keys() - self.keys())}):
            text, record = self._texts.get(key, ""), super().get(key)
            now = record.model_dump_json() if record is not None else ""
            if text != now:
                before = {key: json.loads(text)} if text else {}
                yield from differences(before, {key: json.loads(now)} if now else {}, (name,))

    def _parse_all(self) -> None:
        for key in self:
            self[key]


class LazyDatabase:
    """A database whose tables contain typed records, which are parsed on first access."""

    def __init__(self, kind: Any, published: Database, changes: Iterable[Change]) -> None:
        now = applied(published.tables, changes)
        self._tables = {
            name: Records(_record_kind(field), _table(published.tables, name), _table(now, name))
            for name, field in kind.model_fields.items()
        }
        self.database = kind.model_construct(**self._tables)

    def changes(self) -> list[Change]:
        """Return the differences from the published file."""
        return [
            change for name in sorted(self._tables) for change in self._tables[name].changes(name)
        ]


class WholeDatabase:
    """A small database, which is parsed completely."""

    def __init__(self, kind: Any, published: Database, changes: Iterable[Change]) -> None:
        self._published = published.tables
        self.database = kind.model_validate(copy_json(applied(published.tables, changes)))

    def changes(self) -> list[Change]:
        """Return the differences from the published file."""
        return list(differences(self._published, self.database.model_dump(mode="json")))


DATABASES: Mapping[str, type[LazyDatabase] | type[WholeDatabase]] = {
    "airline": LazyDatabase,
    "retail": LazyDatabase,
    "banking": WholeDatabase,
}
"""By domain."""


@lru_cache(maxsize=8)
def read_bytes(folder: Path) -> bytes:
    """Return the bytes of a folder's database file.

    Raises:
        SpecError: The folder has no readable database.
    """
    try:
        return next(path for path in map(folder.joinpath, FILES) if path.is_file()).read_bytes()
    except (OSError, StopIteration):
        raise SpecError(
            "folder", f"{folder} must contain a {FILES[0]} that all users can read"
        ) from None


@lru_cache(maxsize=2)
def read_database(name: str, folder: str) -> Database:
    """Return a domain's database.

    Args:
        name: Name of the domain.
        folder: The user's folder of data; empty for the package's.

    Raises:
        SpecError: The database cannot be read or is invalid.
        InputError: The package is not installed.
    """
    place = Path(folder) if folder else data_folder(name)
    raw = read_bytes(place)
    try:
        database = Database(gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw)
        if DATABASES[name] is WholeDatabase:
            # This adds empty tables, which a dump of the model contains as well.
            database.tables = (
                domain(name).agent.database.model_validate(database.tables).model_dump(mode="json")
            )
    except ValueError as error:
        raise SpecError("folder", f"{place}: {FILES[0]} is not a valid database: {error}") from None
    return database


def differences(before: Json, after: Json, path: tuple[str, ...] = ()) -> Iterator[Change]:
    """Yield every changed leaf. A list is a leaf, and 1 differs from 1.0."""
    if not (isinstance(before, dict) and isinstance(after, dict)):
        if not _is_same(before, after):
            yield {"path": list(path), "value": copy_json(after)}
        return
    for key in sorted({*before, *after}):
        if key not in after:
            yield {"path": [*path, key]}
        elif key not in before:
            yield {"path": [*path, key], "value": copy_json(after[key])}
        else:
            yield from differences(before[key], after[key], (*path, key))


def applied(tables: JsonObject, changes: Iterable[Change]) -> JsonObject:
    """Return the tables with all changes; unchanged parts are shared, not copied.

    Raises:
        SpecError: A change is invalid or its path does not exist.
    """
    for change in changes:
        match change:
            case {"path": [*steps]} if steps and all(isinstance(step, str) for step in steps):
                tables = _with(tables, [str(step) for step in steps], change)
            case _:
                raise SpecError("changes", f"has an invalid entry: {dict(change)!r}")
    return tables


def merged(tables: JsonObject, more: Mapping[str, Json]) -> JsonObject:
    """Return the tables merged recursively with ``more``."""
    copy = dict(tables)
    for key, value in more.items():
        inner = copy.get(key)
        is_deeper = isinstance(inner, dict) and isinstance(value, dict)
        copy[key] = merged(inner, value) if is_deeper else value  # type: ignore[arg-type]
    return copy


def _is_same(before: Json, after: Json) -> bool:
    if before.__class__ is not after.__class__:
        return False
    return (
        canonical_json(before) == canonical_json(after)
        if isinstance(before, list)
        else before == after
    )


def _with(table: JsonObject, path: list[str], change: Change) -> JsonObject:
    first, *rest = path
    copy = dict(table)
    if rest:
        inner = copy.get(first)
        if not isinstance(inner, dict):
            raise SpecError("changes", f"refer to {first!r}, which does not exist")
        copy[first] = _with(inner, rest, change)
    elif "value" in change:
        copy[first] = change["value"]
    else:
        copy.pop(first, None)
    return copy


def _table(tables: JsonObject, name: str) -> JsonObject:
    table = tables.get(name, {})
    return table if isinstance(table, dict) else {}


def _record_kind(field: Any) -> Any:
    return field.annotation.__args__[1]

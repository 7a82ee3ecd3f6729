"""Databases of τ²-bench's companies, of which a state tells only what is different from the file.

They are megabytes and a conversation changes a few leaves, so files are read once a process, records are
made when somebody looks at them, and what is told is a list of changed leaves. Two databases over one file
are equal exactly when these lists are.
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
"""``path``, keys from the outside in, and ``value``, which is missing where the leaf was removed."""


class Database:
    """A file's content. Nobody changes it."""

    def __init__(self, raw: bytes) -> None:
        self.tables: JsonObject = json.loads(raw)
        # The published file and the package's differ in the line break at their end.
        self.digest = sha256(raw.strip()).hexdigest()


class Records(dict[str, Any]):
    """A table whose records are made of JSON when somebody looks at them."""

    def __init__(self, kind: Any, published: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        """Make none yet, but those that are not as published.

        Args:
            kind: the class of a record.
            published: records by key, as JSON.
            now: the same, with all changes.
        """
        super().__init__(now)
        self._kind = kind
        self._published = published
        self._texts: dict[str, str] = {}
        for key, record in now.items():
            if record is not published.get(key):
                self[key]

    def __getitem__(self, key: str) -> Any:
        """Return a record, made now if it was not."""
        record = super().__getitem__(key)
        if isinstance(record, dict):
            published = self._published.get(key)
            made = self._kind.model_validate(record)
            first = (
                made
                if record is published or published is None
                else self._kind.model_validate(published)
            )
            self._texts[key] = first.model_dump_json() if published is not None else ""
            super().__setitem__(key, record := made)
        return record

    def __setitem__(self, key: str, record: Any) -> None:
        """Take a record in the place of one that is made first, so that it is known what was there."""
        if key in self:
            self[key]
        self._texts.setdefault(key, "")
        super().__setitem__(key, record)

    def get(self, key: str, default: Any = None) -> Any:
        """Return a record, or the default."""
        try:
            return self[key]
        except KeyError:
            return default

    def values(self) -> Any:
        """Return all records."""
        self._make_all()
        return super().values()

    def items(self) -> Any:
        """Return all records by key."""
        self._make_all()
        return super().items()

    def changes(self, name: str) -> Iterator[Change]:
        """Yield what is not as published."""
        for key in sorted({*self._texts, *(self._published.keys() - self.keys())}):
            text, record = self._texts.get(key, ""), super().get(key)
            now = record.model_dump_json() if record is not None else ""
            if text != now:
                before = {key: json.loads(text)} if text else {}
                yield from differences(before, {key: json.loads(now)} if now else {}, (name,))

    def _make_all(self) -> None:
        for key in self:
            self[key]


class LazyDatabase:
    """A database all of whose tables hold typed records."""

    def __init__(self, kind: Any, published: Database, changes: Iterable[Change]) -> None:
        now = applied(published.tables, changes)
        self._tables = {
            name: Records(_record_kind(field), _table(published.tables, name), _table(now, name))
            for name, field in kind.model_fields.items()
        }
        self.database = kind.model_construct(**self._tables)

    def changes(self) -> list[Change]:
        """Return what is not as published."""
        return [
            change for name in sorted(self._tables) for change in self._tables[name].changes(name)
        ]


class WholeDatabase:
    """A small database, whatever its tables hold."""

    def __init__(self, kind: Any, published: Database, changes: Iterable[Change]) -> None:
        self._published = published.tables
        self.database = kind.model_validate(copy_json(applied(published.tables, changes)))

    def changes(self) -> list[Change]:
        """Return what is not as published."""
        return list(differences(self._published, self.database.model_dump(mode="json")))


DATABASES: Mapping[str, type[LazyDatabase] | type[WholeDatabase]] = {
    "airline": LazyDatabase,
    "retail": LazyDatabase,
    "banking": WholeDatabase,
}
"""By domain."""


@lru_cache(maxsize=8)
def read_bytes(folder: Path) -> bytes:
    """Return a folder's database as it is stored.

    Raises:
        SpecError: there is none that may be read.
    """
    try:
        return next(path for path in map(folder.joinpath, FILES) if path.is_file()).read_bytes()
    except (OSError, StopIteration):
        raise SpecError(
            "folder", f"{folder} must hold a {FILES[0]} that everybody may read"
        ) from None


@lru_cache(maxsize=2)
def read_database(name: str, folder: str) -> Database:
    """Return a domain's database.

    Args:
        name: of the domain.
        folder: of the user's, empty for the package's own.

    Raises:
        SpecError: there is none that may be read, or it is none.
        InputError: the package is not installed.
    """
    place = Path(folder) if folder else data_folder(name)
    raw = read_bytes(place)
    try:
        found = Database(gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw)
        if DATABASES[name] is WholeDatabase:
            # With the tables that are empty, as they are told later.
            found.tables = (
                domain(name).agent.database.model_validate(found.tables).model_dump(mode="json")
            )
    except ValueError as error:
        raise SpecError("folder", f"{place}: {FILES[0]} is no database: {error}") from None
    return found


def differences(before: Json, after: Json, path: tuple[str, ...] = ()) -> Iterator[Change]:
    """Yield every leaf that is not what it was; a list is a leaf, and 1 and 1.0 differ."""
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
    """Return the tables with all changes; what none of them touches is shared, not copied.

    Raises:
        SpecError: a change is none, or leads nowhere.
    """
    for change in changes:
        match change:
            case {"path": [*steps]} if steps and all(isinstance(step, str) for step in steps):
                tables = _with(tables, [str(step) for step in steps], change)
            case _:
                raise SpecError("changes", f"has one that is none: {dict(change)!r}")
    return tables


def merged(tables: JsonObject, more: Mapping[str, Json]) -> JsonObject:
    """Return the tables with everything in ``more`` put in, objects key by key."""
    found = dict(tables)
    for key, value in more.items():
        inner = found.get(key)
        is_deeper = isinstance(inner, dict) and isinstance(value, dict)
        found[key] = merged(inner, value) if is_deeper else value  # type: ignore[arg-type]
    return found


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
    found = dict(table)
    if rest:
        inner = found.get(first)
        if not isinstance(inner, dict):
            raise SpecError("changes", f"lead to {first!r}, which is not there")
        found[first] = _with(inner, rest, change)
    elif "value" in change:
        found[first] = change["value"]
    else:
        found.pop(first, None)
    return found


def _table(tables: JsonObject, name: str) -> JsonObject:
    table = tables.get(name, {})
    return table if isinstance(table, dict) else {}


def _record_kind(field: Any) -> Any:
    return field.annotation.__args__[1]

"""Registries: names of extensions and their import paths. An entry is imported when it is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from importlib.metadata import entry_points
from typing import Generic, TypeVar, cast

from fumehood.core.errors import InputError, nearest

T = TypeVar("T")


class Registry(Generic[T]):
    """The extensions of one kind.

    Other packages add entries through the entry-point group ``fumehood.<kind>s``. They cannot
    replace a built-in entry.
    """

    def __init__(self, kind: str, table: Mapping[str, str]) -> None:
        """Create the registry. Nothing is imported.

        Args:
            kind: of the entries, in the singular, such as ``"world"``.
            table: name → ``"module:attribute"``.
        """
        self.kind = kind
        self.table = dict(table)
        self._loaded: dict[str, T] = {}

    @property
    def group(self) -> str:
        """Name of the entry-point group, such as ``fumehood.turn_policies``."""
        kind = self.kind.replace(" ", "_")
        return f"fumehood.{kind[:-1]}ies" if kind.endswith("y") else f"fumehood.{kind}s"

    def __iter__(self) -> Iterator[str]:
        """Iterate over the built-in names in their order, then over the installed names, sorted."""
        yield from self.table
        yield from sorted(set(self._from_entry_points()) - set(self.table))

    def names(self) -> list[str]:
        """Return the names of all entries, built in and installed, sorted."""
        return sorted(self)

    def load(self, name: str) -> T:
        """Import and return an entry.

        Raises:
            InputError: there is no such entry, and the message names the nearest one; or an
                installed entry cannot be imported.
        """
        if name not in self._loaded:
            self._loaded[name] = self._import(name)
        return self._loaded[name]

    def load_all(self) -> None:
        """Import every entry; a broken installed entry fails later, when it is loaded by name."""
        for name in self.table:
            self.load(name)
        for name in self._from_entry_points():
            with suppress(InputError):
                self.load(name)

    def _import(self, name: str) -> T:
        if name in self.table:
            return self._attribute(self.table[name])
        path = self._from_entry_points().get(name)
        if path is None:
            raise InputError(f"no {self.kind} is called {name!r}; {nearest(name, self.names())}")
        try:
            return self._attribute(path)
        except (ImportError, AttributeError) as error:
            raise InputError(
                f"an installed package registers the {self.kind} {name!r} as {path}, which cannot "
                f"be imported: {error}"
            ) from error

    def _attribute(self, path: str) -> T:
        module, _, attribute = path.partition(":")
        return cast(T, getattr(import_module(module), attribute))

    def _from_entry_points(self) -> dict[str, str]:
        return {entry.name: entry.value for entry in entry_points(group=self.group)}

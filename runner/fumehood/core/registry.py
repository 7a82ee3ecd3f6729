"""Registries: names of extensions and their import paths. An entry is imported when it is used."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, NamedTuple, TypeVar, cast

from fumehood.core.errors import InputError, nearest

T = TypeVar("T")


class Extension(NamedTuple):
    """An entry of a registry, for lists."""

    name: str
    about: str
    """First sentence of its documentation; empty if it has none or cannot be imported."""
    distribution: str = ""
    """Name and version of the distribution that installed it; empty for a built-in entry."""
    problem: str = ""
    """Why it cannot be used, with the remedy; empty if it can be used."""


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
        for _ in self.working():
            pass

    def working(self, names: Iterable[str] | None = None) -> Iterator[tuple[str, T]]:
        """Yield the name and the object of entries, without broken installed entries.

        Args:
            names: of the entries; None for all.
        """
        for name in self if names is None else names:
            try:
                entry = self.load(name)
            except InputError:  # Only of installed entries.
                continue
            yield name, entry

    def path_of(self, name: str) -> str:
        """Return the ``module:attribute`` of an entry.

        Raises:
            InputError: there is no such entry, or several distributions install it.
        """
        if name in self.table:
            return self.table[name]
        entries = self._from_entry_points().get(name)
        if entries is None:
            raise InputError(f"no {self.kind} is called {name!r}; {nearest(name, self.names())}")
        if len({entry.value for entry in entries}) > 1:
            owners = " and ".join(map(_owner, entries))
            raise InputError(f"{owners} install the {self.kind} {name!r}: remove one of them")
        return entries[0].value

    def extensions(self) -> Iterator[Extension]:
        """Yield all entries, broken ones included."""
        for name in self.table:
            yield Extension(name, about(self.load(name)))
        for name, entries in sorted(self._from_entry_points().items()):
            owner = " and ".join(map(_owner, entries))
            try:
                if name in self.table:
                    raise InputError(
                        f"{owner} installs the {self.kind} {name!r}, which is the name of a "
                        "built-in one and has no effect: rename the entry point"
                    )
                yield Extension(name, about(self.load(name)), owner)
            except InputError as error:
                yield Extension(name, "", owner, str(error))

    def _import(self, name: str) -> T:
        path = self.path_of(name)
        if name in self.table:
            return self._attribute(path)
        try:
            return self._attribute(path)
        except (Exception, SystemExit) as error:
            owner = _owner(self._from_entry_points()[name][0])
            raise InputError(
                f"{owner} registers the {self.kind} {name!r} as {path} ({self.group}), which "
                f"cannot be imported ({type(error).__name__}: {error}): repair or uninstall it"
            ) from error

    def _attribute(self, path: str) -> T:
        module, _, attribute = path.partition(":")
        return cast(T, getattr(import_module(module), attribute))

    def _from_entry_points(self) -> dict[str, list[EntryPoint]]:
        entries: dict[str, list[EntryPoint]] = {}
        for entry in _installed(tuple(sys.path)):
            if entry.group == self.group and entry not in entries.setdefault(entry.name, []):
                entries[entry.name].append(entry)
        return entries


@lru_cache(maxsize=1)
def _installed(search_path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Return the entry points for Fumehood of the packages on ``search_path``, ``sys.path``.

    They are read once per process, because this opens files of every installed package.
    """
    groups = entry_points()
    names = [name for name in groups.groups if name.startswith("fumehood.")]
    return tuple(entry for name in names for entry in groups.select(group=name))


def _owner(entry: EntryPoint) -> str:
    dist = entry.dist
    return f"{dist.name} {dist.version}" if dist else "an installed package"


def about(entry: object) -> str:
    """Return the first sentence of the documentation of an object, on one line."""
    text = " ".join((inspect.getdoc(entry) or "").partition("\n\n")[0].split())
    text = re.sub(r":\w+:`[~.\w]*?(\w+)`|``(.+?)``", r"\1\2", text)
    return f"{text.partition('. ')[0].rstrip('.')}." if text else ""

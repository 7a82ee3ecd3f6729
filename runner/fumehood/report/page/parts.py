"""What the overview consists of, as data for its template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from fumehood.report.tables.reading import ReadingTable


@dataclass(frozen=True, slots=True)
class Drawn:
    """A picture at both widths."""

    title: str
    caption: str
    wide: Markup
    narrow: Markup


@dataclass(frozen=True, slots=True)
class Flipped:
    """One task that flipped, with both its episodes."""

    task: str
    trial: int
    faults: str
    won: bool
    first: str
    """Where the page shows the first's episode."""
    second: str


@dataclass(frozen=True, slots=True)
class FlipList:
    """The tasks that flipped in one comparison."""

    title: str
    total: int
    flips: tuple[Flipped, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """A way to some episodes."""

    text: str
    address: str


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the overview. Without pictures and tables it is left out."""

    anchor: str
    name: str
    """For the way there: a word."""
    title: str
    shows: tuple[str, ...] = ()
    """How the names of its pictures begin."""
    pictures: Sequence[Drawn] = ()
    tables: Sequence[ReadingTable] = ()
    flips: Sequence[FlipList] = ()
    links: Sequence[Link] = ()
    open: bool = False
    """Whether tables are seen at once, or after a click."""

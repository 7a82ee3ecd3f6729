"""Orders the documents of a snapshot by ID, independently of input order and chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fumehood_snapshots.build.chunk import HEADS, Chunk, broken_line
from fumehood_snapshots.documents.urls import canonical_url
from fumehood_snapshots.format.hashing import parse_json

DROPPED = -1
ABSENT = -1


@dataclass(frozen=True, slots=True)
class Order:
    """The documents of the snapshot and their locations."""

    ids: list[str]
    """Document IDs, sorted."""
    chunks: NDArray[np.int32]
    """Chunk, per document."""
    positions: NDArray[np.int32]
    """Position in the chunk, per document."""
    numbers: list[NDArray[np.int32]]
    """Document number or ``DROPPED``, per chunk and position."""
    urls: dict[str, int]
    """URL → lowest number of its documents."""
    fields: dict[str, NDArray[np.int32]]
    """Index into ``field_values`` or ``ABSENT``, per field and document."""
    field_values: dict[str, list[str]]
    """Sorted values, per field."""
    duplicates: list[bytes]
    """Lines for the list of broken pages, one per duplicate ID."""


@dataclass(slots=True)
class _Heads:
    """Attributes of all documents, in input order."""

    ids: list[str] = field(default_factory=list)
    urls: list[list[str]] = field(default_factory=list)
    where: list[str] = field(default_factory=list)
    fields: dict[str, dict[int, str]] = field(default_factory=dict)


def order_documents(chunks: Sequence[Chunk]) -> Order:
    """Read the heads of all chunks and order their documents; keep the first of equal IDs."""
    heads, sizes = _Heads(), []
    for chunk in chunks:
        before = len(heads.ids)
        _read_heads(chunk, heads)
        sizes.append(len(heads.ids) - before)
    kept, duplicates = _kept_in_order(heads)
    numbers = np.full(len(heads.ids), DROPPED, dtype=np.int32)
    numbers[kept] = np.arange(len(kept), dtype=np.int32)
    bounds = np.cumsum([0, *sizes])
    chunk_of = np.searchsorted(bounds, kept, side="right") - 1
    values = {name: sorted(set(column.values())) for name, column in sorted(heads.fields.items())}
    return Order(
        ids=[heads.ids[place] for place in kept],
        chunks=chunk_of.astype(np.int32),
        positions=(np.array(kept, dtype=np.int64) - bounds[chunk_of]).astype(np.int32),
        numbers=np.split(numbers, bounds[1:-1]),
        urls=_urls(heads, kept),
        fields={name: _codes(heads.fields[name], values[name], kept) for name in values},
        field_values=values,
        duplicates=duplicates,
    )


def _read_heads(chunk: Chunk, heads: _Heads) -> None:
    with (chunk.folder / HEADS).open("rb") as lines:
        for line in lines:
            identity, urls, fields, where = parse_json(line)
            for name, value in fields.items():
                heads.fields.setdefault(name, {})[len(heads.ids)] = value
            heads.ids.append(identity)
            heads.urls.append(urls)
            heads.where.append(where)


def _kept_in_order(heads: _Heads) -> tuple[list[int], list[bytes]]:
    first: dict[str, int] = {}
    duplicates = []
    for place, identity in enumerate(heads.ids):
        if first.setdefault(identity, place) != place:
            reason = f"its ID {identity!r} is already used by {heads.where[first[identity]]}"
            duplicates.append(broken_line(heads.where[place], reason))
    # Python orders strings by code point, which is the order of their UTF-8 bytes.
    return [first[identity] for identity in sorted(first)], duplicates


def _urls(heads: _Heads, kept: list[int]) -> dict[str, int]:
    """Map each URL to a document: its URL first, then a canonical form, then an alias."""
    exact: dict[str, int] = {}
    canonical: dict[str, int] = {}
    aliases: dict[str, int] = {}
    for number, place in enumerate(kept):
        url, *others = heads.urls[place]
        if url:
            exact.setdefault(url, number)
            canonical.setdefault(canonical_url(url), number)
        for other in others:
            aliases.setdefault(canonical_url(other), number)
    return {**aliases, **canonical, **exact}


def _codes(column: dict[int, str], values: list[str], kept: list[int]) -> NDArray[np.int32]:
    numbers = {value: number for number, value in enumerate(values)}
    codes = (numbers[column[place]] if place in column else ABSENT for place in kept)
    return np.fromiter(codes, dtype=np.int32, count=len(kept))

"""Merges the counts of chunks into the index, one range of terms at a time.

The result does not depend on the chunks: terms are sorted, the postings of a term are sorted by
document, and every weight depends on counts only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fumehood_snapshots.build.chunk import Chunk
from fumehood_snapshots.build.options import Progress
from fumehood_snapshots.build.order import DROPPED
from fumehood_snapshots.format import layout
from fumehood_snapshots.format.arrays import ArrayWriter, save_array
from fumehood_snapshots.format.manifest import RankingSpec
from fumehood_snapshots.format.strings import write_strings
from fumehood_snapshots.index.weights import idf_values, term_weights


@dataclass(frozen=True, slots=True)
class _Input:
    """One chunk with the term and document numbers of the snapshot."""

    chunk: Chunk
    terms: NDArray[np.int64]
    """Number in the snapshot, per term of the chunk; ascending."""
    numbers: NDArray[np.int32]
    """Number in the snapshot or ``DROPPED``, per document of the chunk."""


@dataclass(frozen=True, slots=True)
class _Statistics:
    """Statistics per shard for the weights; usually there is one shard."""

    offsets: NDArray[np.int64]
    """Shape (terms + 1,)."""
    idf: NDArray[np.float64]
    """Shape (shards, terms)."""
    mean_lengths: NDArray[np.float64]
    """Shape (shards,)."""
    lengths: NDArray[np.int64]
    """Shape (documents,)."""
    shard_documents: int


@dataclass(frozen=True, slots=True)
class IndexCounts:
    """The size of an index."""

    terms: int
    postings: int
    tokens: int


def merge_index(
    root: Path,
    chunks: Sequence[Chunk],
    numbers: Sequence[NDArray[np.int32]],
    ranking: RankingSpec,
    postings_at_once: int,
    progress: Progress,
) -> IndexCounts:
    """Write the index.

    Args:
        root: folder of the new snapshot.
        chunks: all of them.
        numbers: document number or ``DROPPED``, per chunk and position.
        ranking: BM25 parameters.
        postings_at_once: maximum number of postings sorted in memory.
        progress: receives the number of finished terms.
    """
    terms = sorted(set().union(*(chunk.terms() for chunk in chunks)))
    number_of = {term: number for number, term in enumerate(terms)}
    inputs = [_numbered(chunk, number_of, own) for chunk, own in zip(chunks, numbers, strict=True)]
    del number_of
    document_count = sum(int((own != DROPPED).sum()) for own in numbers)
    statistics = _statistics(inputs, len(terms), document_count, ranking)
    write_strings(root, layout.TERMS, terms)
    save_array(root / layout.POSTING_OFFSETS, statistics.offsets, "<i8")
    postings = int(statistics.offsets[-1])
    with (
        ArrayWriter(root / layout.POSTING_DOCUMENTS, "<i4", postings) as documents,
        ArrayWriter(root / layout.POSTING_WEIGHTS, "<f4", postings) as weights,
    ):
        for first, last in _term_ranges(statistics.offsets, postings_at_once):
            block = _sorted_block(inputs, first, last)
            documents.append(block.documents)
            weights.append(_weights(block, statistics, ranking))
            progress("merging terms", last, len(terms))
    return IndexCounts(len(terms), postings, int(statistics.lengths.sum()))


def _numbered(chunk: Chunk, number_of: dict[str, int], numbers: NDArray[np.int32]) -> _Input:
    terms = chunk.terms()
    own = np.fromiter((number_of[term] for term in terms), dtype=np.int64, count=len(terms))
    return _Input(chunk, own, numbers)


def _statistics(
    inputs: Sequence[_Input], term_count: int, document_count: int, ranking: RankingSpec
) -> _Statistics:
    shard_documents = ranking.shard_documents or max(1, document_count)
    shards = max(1, -(-document_count // shard_documents))
    frequencies = np.zeros(shards * term_count, dtype=np.int64)
    lengths = np.zeros(document_count, dtype=np.int64)
    for part in inputs:
        kept = part.numbers != DROPPED
        lengths[part.numbers[kept]] = part.chunk.lengths[kept]
        documents = part.numbers[part.chunk.documents]
        terms = np.repeat(part.terms, np.diff(part.chunk.offsets))
        keys = (documents // shard_documents) * term_count + terms
        np.add.at(frequencies, keys[documents != DROPPED], 1)
    table = frequencies.reshape(shards, term_count)
    sizes = [
        min(shard_documents, document_count - shard * shard_documents) for shard in range(shards)
    ]
    starts = np.arange(shards) * shard_documents
    totals = np.add.reduceat(lengths, starts) if document_count else np.zeros(1)
    return _Statistics(
        offsets=np.concatenate(([0], np.cumsum(table.sum(axis=0)))).astype(np.int64),
        idf=np.array(
            [idf_values(ranking, row, size) for row, size in zip(table, sizes, strict=True)]
        ),
        # A shard without terms has no mean length, and no posting that needs it.
        mean_lengths=np.maximum(totals, 1) / np.maximum(sizes, 1),
        lengths=lengths,
        shard_documents=shard_documents,
    )


def _term_ranges(offsets: NDArray[np.int64], postings_at_once: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of terms with about this many postings each; never split a term."""
    first, count = 0, len(offsets) - 1
    while first < count:
        reach = int(np.searchsorted(offsets, offsets[first] + postings_at_once, side="right")) - 1
        last = min(count, max(first + 1, reach))
        yield first, last
        first = last


@dataclass(frozen=True, slots=True)
class _Block:
    """Postings of a range of terms, sorted by term and document."""

    terms: NDArray[np.int64]
    documents: NDArray[np.int64]
    frequencies: NDArray[np.int32]


def _sorted_block(inputs: Sequence[_Input], first: int, last: int) -> _Block:
    parts: list[tuple[NDArray[Any], NDArray[Any]]] = []
    for part in inputs:
        low, high = np.searchsorted(part.terms, (first, last))
        begin, end = int(part.chunk.offsets[low]), int(part.chunk.offsets[high])
        documents = part.numbers[part.chunk.documents[begin:end]].astype(np.int64)
        terms = np.repeat(part.terms[low:high], np.diff(part.chunk.offsets[low : high + 1]))
        kept = documents != DROPPED
        keys = (terms << 32 | documents)[kept]
        parts.append((keys, part.chunk.frequencies[begin:end][kept]))
    keys = np.concatenate([part[0] for part in parts])
    # Inputs in the order of their IDs, which are common, are a few sorted runs that a stable sort
    # merges.
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    return _Block(keys >> 32, keys & 0xFFFFFFFF, np.concatenate([part[1] for part in parts])[order])


def _weights(block: _Block, statistics: _Statistics, ranking: RankingSpec) -> NDArray[np.float64]:
    shards = block.documents // statistics.shard_documents
    saturated = term_weights(
        ranking,
        block.frequencies,
        statistics.lengths[block.documents],
        statistics.mean_lengths[shards],
    )
    weights: NDArray[np.float64] = statistics.idf[shards, block.terms] * saturated
    return weights

"""Counts the terms of one chunk of documents.

The result is sorted by term, so chunks can be merged by ranges of terms in bounded
memory. Weights and final document numbers are computed later.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fumehood_snapshots.analysis.analyzer import REMEMBERED_WORDS_MAX, Analyzer
from fumehood_snapshots.analysis.spec import AnalysisSpec

NOT_INDEXED = -1


@dataclass(frozen=True, slots=True)
class CountedChunk:
    """The postings of one chunk, term by term."""

    terms: tuple[str, ...]
    """Sorted by code point."""
    offsets: NDArray[np.int64]
    """Shape (terms + 1,): offset of each term's postings, and the total."""
    documents: NDArray[np.int32]
    """Position of the document in the chunk, per posting; ascending within a term."""
    frequencies: NDArray[np.int32]
    """Term frequency, per posting."""
    lengths: NDArray[np.int32]
    """Number of terms per document, with repetitions."""


class _Numbering(dict[str, int]):
    """Word → number of its term in order of appearance; ``NOT_INDEXED`` if it is not indexed."""

    def __init__(self, analyzer: Analyzer) -> None:
        super().__init__()
        self._analyzer = analyzer
        self.terms: dict[str, int] = {}

    def __missing__(self, word: str) -> int:
        term = self._analyzer.term(word)
        number = NOT_INDEXED if term is None else self.terms.setdefault(term, len(self.terms))
        self[word] = number
        return number


class TermCounter:
    """Counts chunks and caches words between them. Not thread-safe."""

    def __init__(self, spec: AnalysisSpec) -> None:
        self._spec = spec
        self._forget()

    def count(self, texts: Iterable[str]) -> CountedChunk:
        """Count the terms of the texts of one chunk, each text being one document."""
        if len(self._numbering) > REMEMBERED_WORDS_MAX:
            self._forget()
        number_of, words = self._numbering.__getitem__, self._analyzer.words
        numbers: list[NDArray[np.int32]] = []
        for text in texts:
            term_numbers = np.array(list(map(number_of, words(text))), dtype=np.int32)
            numbers.append(term_numbers[term_numbers != NOT_INDEXED])
        lengths = np.array([len(term_numbers) for term_numbers in numbers], dtype=np.int32)
        if not lengths.any():
            nothing = np.zeros(0, dtype=np.int32)
            return CountedChunk((), np.zeros(1, dtype=np.int64), nothing, nothing, lengths)
        return _grouped(np.concatenate(numbers), lengths, list(self._numbering.terms))

    def _forget(self) -> None:
        self._analyzer = Analyzer(self._spec)
        self._numbering = _Numbering(self._analyzer)


def _grouped(
    numbers: NDArray[np.int32], lengths: NDArray[np.int32], known: list[str]
) -> CountedChunk:
    """Group the occurrences of terms, one document after another, by term and document.

    ``known`` holds the term of each number, including numbers that do not occur here.
    """
    present = np.flatnonzero(np.bincount(numbers, minlength=len(known))).tolist()
    present.sort(key=known.__getitem__)
    # A key combines term and document; half the width sorts in half the time and usually suffices.
    shift = len(lengths).bit_length()
    width: type[Any] = np.uint32 if len(present).bit_length() + shift <= 32 else np.uint64
    rank = np.zeros(len(known), dtype=width)
    rank[present] = np.arange(len(present), dtype=width) << width(shift)
    keys: NDArray[Any] = rank[numbers] | np.repeat(np.arange(len(lengths), dtype=width), lengths)
    keys.sort()
    starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    postings = keys[starts]
    return CountedChunk(
        terms=tuple(known[number] for number in present),
        offsets=_offsets(postings >> width(shift), len(present)),
        documents=(postings & width((1 << shift) - 1)).astype(np.int32),
        frequencies=np.diff(starts, append=len(keys)).astype(np.int32),
        lengths=lengths,
    )


def _offsets(terms: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Return the offset of each of ``count`` terms in the ascending ``terms`` of postings."""
    ends: NDArray[np.int64] = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(terms.astype(np.int64), minlength=count), out=ends[1:])
    return ends

"""Scores all documents for one query, with ``bm25s`` over memory-mapped arrays.

The index holds the final weight of every pair of term and document, so scoring is a sum. The sum is
taken in the order of the query's terms sorted by code point, never in an order that depends on
threads or shards, so the result is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fumehood_snapshots.errors import SnapshotDamagedError
from fumehood_snapshots.format import layout
from fumehood_snapshots.format.arrays import map_array
from fumehood_snapshots.format.strings import StringTable, table_files


class Scorer:
    """The memory-mapped index of one snapshot."""

    def __init__(self, root: Path, document_count: int) -> None:
        """Map the arrays.

        Raises:
            SnapshotDamagedError: they are inconsistent.
        """
        self.terms = StringTable(*(root / name for name in table_files(layout.TERMS)))
        self.offsets = map_array(root / layout.POSTING_OFFSETS, "<i8")
        self.documents = map_array(root / layout.POSTING_DOCUMENTS, "<i4")
        self.weights = map_array(root / layout.POSTING_WEIGHTS, "<f4")
        if not (
            len(self.offsets) == len(self.terms) + 1
            and int(self.offsets[-1]) == len(self.documents) == len(self.weights)
        ):
            raise SnapshotDamagedError("the arrays of the index are inconsistent")
        self._document_count = document_count
        self._bm25 = _bm25_over(self.offsets, self.documents, self.weights, document_count)

    def scores(self, terms: Iterable[str]) -> NDArray[np.float32]:
        """Return the score of every document for the terms of a query.

        Repetitions count, unknown terms are ignored.

        Raises:
            SnapshotDamagedError: a posting names a document that does not exist.
        """
        term_numbers = (self.terms.find(term) for term in sorted(terms))
        numbers = [number for number in term_numbers if number is not None]
        if not numbers:
            return np.zeros(self._document_count, dtype=np.float32)
        try:
            scores: NDArray[np.float32] = self._bm25.get_scores_from_ids(numbers)
        except (IndexError, ValueError) as error:
            raise SnapshotDamagedError(
                "the index refers to missing documents: verify the snapshot"
            ) from error
        return scores


def _bm25_over(
    offsets: NDArray[Any], documents: NDArray[Any], weights: NDArray[Any], document_count: int
) -> Any:
    from bm25s import BM25

    # The weights already contain the formula's parameters. The backend is explicit, so an installed
    # numba does not change which code computes the sum.
    bm25 = BM25(backend="numpy", csc_backend="numpy", dtype="float32", int_dtype="int64")
    bm25.nonoccurrence_array = None
    bm25.scores = {
        "data": weights,
        "indices": documents,
        "indptr": offsets,
        "num_docs": document_count,
    }
    return bm25

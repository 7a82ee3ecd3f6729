"""BM25 formulas: convert counts to the weight of a term in a document.

Logarithms use ``math.log`` per value, because vectorised logarithms differ between processors in
the last digit. All values are computed in 64 bits and stored in 32 bits.

Sources: Robertson and Zaragoza, *The Probabilistic Relevance Framework* (2009), for the saturation
of term frequency; Kamphuis et al., *Which BM25 Do You Mean?* (ECIR 2020), for the variants;
``rank_bm25`` for BM25Okapi's treatment of a negative IDF.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fumehood_snapshots.format.manifest import RankingSpec

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


def idf_values(spec: RankingSpec, document_frequencies: Counts, document_count: int) -> Floats:
    """Return the inverse document frequency of every term of one shard.

    Args:
        spec: which variant.
        document_frequencies: documents of the shard that contain the term, per term; may be 0.
        document_count: number of documents of the shard.
    """
    distinct, where = np.unique(document_frequencies, return_inverse=True)
    formula = _okapi_idf if spec.method == "okapi" else _lucene_idf
    by_frequency = np.array([formula(int(df), document_count) if df else 0.0 for df in distinct])
    values = by_frequency[where]
    if spec.method == "okapi":
        _lift_negative(values, document_frequencies, spec.epsilon)
    return values


def term_weights(
    spec: RankingSpec,
    term_frequencies: NDArray[Any],
    document_lengths: NDArray[Any],
    mean_lengths: Floats,
) -> Floats:
    """Return the saturated term frequency of each posting, without the IDF.

    Args:
        spec: which variant, with k1 and b.
        term_frequencies: occurrences of the term in the document, per posting.
        document_lengths: terms in the document, per posting.
        mean_lengths: mean document length of the shard, per posting.
    """
    frequencies = term_frequencies.astype(np.float64)
    damping = spec.k1 * (1 - spec.b + spec.b * document_lengths / mean_lengths)
    gain = spec.k1 + 1 if spec.method == "okapi" else 1.0
    weights: Floats = frequencies * gain / (frequencies + damping)
    return weights


def _lucene_idf(frequency: int, documents: int) -> float:
    return math.log(1 + (documents - frequency + 0.5) / (frequency + 0.5))


def _okapi_idf(frequency: int, documents: int) -> float:
    return math.log(documents - frequency + 0.5) - math.log(frequency + 0.5)


def _lift_negative(values: Floats, document_frequencies: Counts, epsilon: float) -> None:
    present = document_frequencies > 0
    if not present.any():
        return
    # fsum, because a plain sum depends on the numbering of terms.
    mean = math.fsum(values[present].tolist()) / int(present.sum())
    values[present & (values < 0)] = epsilon * mean

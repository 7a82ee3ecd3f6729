"""The formulas of BM25, from counts to the weight of a term in a document.

Logarithms are taken one by one with ``math.log`` and the rest is plain IEEE arithmetic, because vectorised
logarithms differ between processors in the last digit. Everything is computed in 64 bits and stored in 32.

Sources: Robertson and Zaragoza, *The Probabilistic Relevance Framework* (2009), for the saturation of term
frequency; Kamphuis et al., *Which BM25 Do You Mean?* (ECIR 2020), for the variants; ``rank_bm25`` for what
BM25Okapi does with a negative IDF.
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
        document_frequencies: per term, in how many of the shard's documents it occurs; 0 is allowed.
        document_count: of the shard.
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
    """Return the saturated term frequency of each posting; its IDF is still to be multiplied in.

    Args:
        spec: which variant, with k1 and b.
        term_frequencies: per posting, how often the term occurs in the document.
        document_lengths: per posting, terms in the document.
        mean_lengths: per posting, mean terms per document of its shard.
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
    # fsum, because a plain sum would depend on how the terms are numbered.
    mean = math.fsum(values[present].tolist()) / int(present.sum())
    values[present & (values < 0)] = epsilon * mean

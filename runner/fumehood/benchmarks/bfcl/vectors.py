"""Stand-ins for the index and the embedding model of BFCL's vector memory.

This file imports nothing of this project: the differential tests run the original with it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2s
from typing import Any

import numpy as np
from numpy.typing import NDArray

SIZE = 256
"""Of the vectors of :class:`HashedWords`."""
DIGITS = 4
"""Of scores, so that they do not depend on how a processor adds numbers."""
_WORD = re.compile(r"\w+")
Vectors = NDArray[np.float32]


class HashedWords:
    """Embeds a text as the counts of its words, each at a position that its hash decides.

    It finds equal words, not similar meanings: scores with it are not comparable with others.
    """

    def get_sentence_embedding_dimension(self) -> int:
        """Return the size of the vectors."""
        return SIZE

    def encode(self, texts: Sequence[str], **_: Any) -> Vectors:
        """Return one vector of length 1 per text; a text without words becomes zero."""
        vectors = np.zeros((len(texts), SIZE), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in _WORD.findall(text.lower()):
                digest = blake2s(word.encode("utf-8", "surrogatepass"), digest_size=2).digest()
                vectors[row, int.from_bytes(digest, "big") % SIZE] += 1
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(norms == 0, 1, norms), dtype=np.float32)


class FlatIndex:
    """Vectors by ID, searched by inner product; the older of two equal ones comes first."""

    def __init__(self, *_: object) -> None:
        """Create an empty index; it accepts vectors of any size."""
        self._vectors: dict[int, Vectors] = {}

    def add_with_ids(self, vectors: Vectors, ids: NDArray[np.int64]) -> None:
        """Add vectors."""
        assert len(vectors) == len(ids), "one ID per vector"
        self._vectors.update(zip(map(int, ids), vectors, strict=True))

    def remove_ids(self, ids: NDArray[np.int64]) -> None:
        """Remove vectors."""
        for number in ids:
            del self._vectors[int(number)]

    def reset(self) -> None:
        """Remove all vectors."""
        self._vectors.clear()

    def search(self, queries: Vectors, count: int) -> tuple[list[list[float]], list[list[int]]]:
        """Return the scores and the IDs of the best vectors for one query."""
        if not isinstance(count, int):
            raise TypeError("the number of results must be an integer")
        assert len(queries) == 1, "one query"
        assert count > 0, "at least one result"
        scores = {
            number: round(float(np.dot(vector, queries[0])), DIGITS)
            for number, vector in self._vectors.items()
        }
        best = sorted(scores, key=lambda number: -scores[number])[:count]
        return [[scores[number] for number in best]], [best]

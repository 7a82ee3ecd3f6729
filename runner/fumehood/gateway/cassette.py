"""Which recorded answer belongs to a request: by what was asked, and by how often this seat has asked it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256

from fumehood.core.json_values import Json, canonical_json
from fumehood.core.trace import ModelExchange


def request_key(path: str, request: Json) -> str:
    """Return the name of a request: hex SHA-256 of its path and its canonical JSON."""
    return sha256(f"{path}\n{canonical_json(request)}".encode("ascii")).hexdigest()


class SeatCassette:
    """One seat's exchanges, for its episode alone."""

    def __init__(self, seat: str, exchanges: Sequence[ModelExchange]) -> None:
        self._known = {(one.key, one.occurrence): one for one in exchanges if one.seat == seat}
        self._asked = Counter[str]()

    def count(self, key: str) -> int:
        """Return how often this has been asked now, from 1."""
        self._asked[key] += 1
        return self._asked[key]

    def find(self, key: str, occurrence: int) -> ModelExchange | None:
        """Return what was answered then; None when nothing was recorded."""
        return self._known.get((key, occurrence))


def parse_request(body: bytes) -> dict[str, Json] | None:
    """Return a request; None when it is not one JSON object that can be written down again."""
    try:
        value = json.loads(body)
        canonical_json(value)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None

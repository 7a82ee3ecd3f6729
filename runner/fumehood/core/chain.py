"""A trace that cannot be changed unseen: each record's hash covers all before it, a seal covers the count."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from fumehood.core.json_values import canonical_json

_CONTROL = re.compile(r"[\x00-\x1f]")

GENESIS = "0" * 64
"""What stands where the first record's predecessor would."""


class Chain:
    """Links records in order."""

    def __init__(self) -> None:
        self._last = GENESIS
        self.length = 0

    def link(self, event_json: str) -> str:
        """Return the hash of the next record.

        Args:
            event_json: canonical JSON of the event.

        Returns:
            Hex SHA-256 of the previous hash followed by the event.
        """
        self._last = sha256((self._last + event_json).encode("ascii")).hexdigest()
        self.length += 1
        return self._last

    def seal(self) -> str:
        """Return the event that closes the chain: it states how many came before it."""
        return canonical_json({"kind": "sealed", "events": self.length})


@dataclass(frozen=True, slots=True)
class Record:
    """One line of a trace."""

    event_json: str
    hash: str
    wall_ms: int
    """When, milliseconds since the Unix epoch. Not covered by the hash."""
    duration_us: int
    """How long, microseconds. Not covered by the hash."""


class BrokenTrace(ValueError):
    """A trace that was cut, reordered or edited."""


class CutTrace(BrokenTrace):
    """A trace that lacks its end and is sound up to there."""


def _is_one_line(text: str) -> bool:
    return text.isascii() and _CONTROL.search(text) is None


def verify_chain(records: Iterable[Record]) -> str:
    """Check a whole trace.

    Returns:
        The hash of the seal: one digest for all that the trace says.

    Raises:
        BrokenTrace: a hash does not follow from what came before, or the seal is missing or not last.
    """
    chain = Chain()
    sealed, last = False, GENESIS
    for number, record in enumerate(records):
        if sealed:
            raise BrokenTrace(f"record {number} stands after the seal")
        sealed = record.event_json == chain.seal()
        # Canonical text is ASCII on one line, so whatever is not was put there by somebody else.
        if not _is_one_line(record.event_json) or chain.link(record.event_json) != record.hash:
            raise BrokenTrace(f"record {number} does not follow from the one before it")
        last = record.hash
    if not sealed:
        raise CutTrace("the seal is missing: the trace was cut off")
    return last

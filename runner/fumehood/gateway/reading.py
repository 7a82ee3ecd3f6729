"""Reading along while an answer passes: its digest, its size, and what it reports of its cost."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

from fumehood.gateway.dialects import Usage

_EVENT_BYTES_MAX = 16 * 1024 * 1024
"""Of one line of a stream; one that is longer is passed on unread."""


class AnswerReader:
    """Takes an answer's bytes as they come, whole or as events, and never says that they are wrong."""

    def __init__(
        self, content_type: str, usage_of: Callable[[Mapping[str, Any]], Usage], *, keep: bool
    ) -> None:
        """Begin.

        Args:
            content_type: of the answer.
            usage_of: finds what a JSON object reports.
            keep: whether the whole answer is wanted in the end.
        """
        self.content_type = content_type
        self.usage = Usage()
        self.size_bytes = 0
        self._digest = sha256()
        self._usage_of = usage_of
        self.streams = content_type.startswith("text/event-stream")
        self._kept = bytearray() if keep or not self.streams else None
        self._line = bytearray()

    def take(self, part: bytes) -> None:
        """Read the next bytes."""
        self.size_bytes += len(part)
        self._digest.update(part)
        if self._kept is not None:
            self._kept += part
        if self.streams:
            self._take_lines(part)

    def close(self) -> None:
        """Read what only a whole answer tells."""
        if not self.streams and self._kept is not None:
            self._read(bytes(self._kept))

    @property
    def digest(self) -> str:
        """Hex SHA-256 of all bytes so far."""
        return self._digest.hexdigest()

    @property
    def body(self) -> bytes:
        """All bytes so far, where they are kept."""
        return bytes(self._kept or b"")

    def _take_lines(self, part: bytes) -> None:
        *lines, rest = part.split(b"\n")
        for line in lines:
            self._line += line
            if self._line.startswith(b"data:"):
                self._read(bytes(self._line[5:]))
            self._line.clear()
        if len(self._line) + len(rest) <= _EVENT_BYTES_MAX:
            self._line += rest

    def _read(self, text: bytes) -> None:
        # Most events of a stream are words and nothing else; looking is cheaper than parsing.
        if b"usage" not in text:
            return
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return
        if isinstance(value, dict):
            self.usage = self.usage.updated(self._usage_of(value))

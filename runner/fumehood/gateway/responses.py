"""Model responses: passes them on to the agent, and reads the usage that they report."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from hashlib import sha256
from typing import Any

from fumehood.gateway.dialects import Usage
from fumehood.gateway.provider_client import StartedResponse

_EVENT_BYTES_MAX = 16 * 1024 * 1024
"""Size of one line of a stream. A longer line is passed on without being read."""


class ResponseReader:
    """Reads the bytes of a response, whole or as server-sent events. Ignores malformed content."""

    def __init__(
        self, content_type: str, usage_of: Callable[[Mapping[str, Any]], Usage], *, keep: bool
    ) -> None:
        """Create a reader.

        Args:
            content_type: of the response.
            usage_of: returns the usage that a JSON object reports.
            keep: whether to keep the whole response.
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
        """Read the usage of a response that is not a stream."""
        if not self.streams and self._kept is not None:
            self._read(bytes(self._kept))

    @property
    def digest(self) -> str:
        """Hex SHA-256 of all bytes so far."""
        return self._digest.hexdigest()

    @property
    def body(self) -> bytes:
        """All bytes so far, if they are kept."""
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
        # Most events of a stream contain text only, and searching is cheaper than parsing.
        if b"usage" not in text:
            return
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return
        if isinstance(value, dict):
            self.usage = self.usage.updated(self._usage_of(value))


class PassedResponse:
    """A response that is passed on to an agent; settled exactly once."""

    def __init__(
        self,
        started: StartedResponse,
        reader: ResponseReader,
        finish: Callable[[bool], Coroutine[Any, Any, None]],
    ) -> None:
        """Create it.

        Args:
            started: the response of the provider.
            reader: receives the same bytes.
            finish: called at the end; its argument states whether the response is complete.
        """
        self._started = started
        self._reader = reader
        self._finish = finish
        self._is_whole = False
        self._is_over = False

    async def parts(self) -> AsyncIterator[bytes]:
        """Yield the response as it arrives, and settle it before the agent receives its end."""
        try:
            async for part in self._started.parts():
                self._reader.take(part)
                yield part
            self._is_whole = True
        finally:
            await self.end()

    async def end(self) -> None:
        """Settle the cost of the response, unless that was done before."""
        if not self._is_over:
            self._is_over = True
            await asyncio.shield(self._finish(self._is_whole))

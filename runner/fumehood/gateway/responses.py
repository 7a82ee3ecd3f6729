"""Model responses: passes them on to the agent, and reads what they state about the reply."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import suppress
from hashlib import sha256
from typing import Any

from fumehood.core.json_values import Json, JsonObject, finite_number, no_constant
from fumehood.core.outcome import ModelProblem
from fumehood.gateway.costs import fewest_tokens, tokens_to_charge
from fumehood.gateway.dialects import FINISH_REASONS, Dialect, Usage
from fumehood.gateway.provider_client import StartedResponse
from fumehood.gateway.requests import ModelRequest

_EVENT_BYTES_MAX = 16 * 1024 * 1024
"""Size of one line of a stream, and of the arguments of one tool call. Longer ones are not read."""
_ERROR_BYTES = 4096
"""Part of an error that is read."""
_PARSED_BYTES_MAX = 256 * 1024
"""Size of a whole response that takes a few milliseconds to parse."""
_USAGE = re.compile(rb'"usage(?:Metadata)?"[ \t\r\n]*:[ \t\r\n]*(?=\{)')
"""Before the usage of a response. In the text of a model, its quotes would be escaped."""
_USAGE_BYTES = 4096
OVERFLOW = re.compile(
    r"context[_ ]length|context window|maximum context|prompt is too long|"
    r"exceeds the (maximum|context)|input token count",
    re.IGNORECASE,
)
"""In the errors of providers for a conversation that is longer than the context of the model. The
scaffolds of the SDK read errors in the same way."""
_BUSY = frozenset({408, 409, 425, 429})
"""Statuses that are no statement about the request."""


class ResponseReader:
    """Reads the bytes of a response, whole or as server-sent events. Ignores malformed content."""

    def __init__(
        self, content_type: str, dialect: Dialect, *, keep: bool, usage_only: bool = False
    ) -> None:
        """Create a reader.

        Args:
            content_type: of the response.
            dialect: of the request.
            keep: whether to keep the whole response.
            usage_only: whether to read only the usage of a large response, for a process in which
                parsing it would delay others.
        """
        self._usage_only = usage_only
        self.content_type = content_type
        self.usage = Usage()
        self.finish_reason = ""
        """As traces name it; empty if the response does not state it."""
        self.size_bytes = 0
        self._digest = sha256()
        self._dialect = dialect
        self.streams = content_type.startswith("text/event-stream")
        self._kept = bytearray() if keep or not self.streams else None
        self._line = bytearray()
        self._has_form = False
        self._arguments: dict[str, str] = {}

    def take(self, part: bytes) -> None:
        """Read the next bytes."""
        self.size_bytes += len(part)
        self._digest.update(part)
        if self._kept is not None:
            self._kept += part
        if self.streams:
            self._take_lines(part)

    def close(self) -> None:
        """Read a response that is not a stream."""
        if self.streams or self._kept is None:
            return
        if self._usage_only and len(self._kept) > _PARSED_BYTES_MAX:
            self._read_usage()
        else:
            self._read(bytes(self._kept))

    @property
    def digest(self) -> str:
        """Hex SHA-256 of all bytes so far."""
        return self._digest.hexdigest()

    @property
    def body(self) -> bytes:
        """All bytes so far, if they are kept."""
        return bytes(self._kept or b"")

    def problems(self, status: int, *, whole: bool) -> Iterator[ModelProblem]:
        """Yield what went wrong with the reply.

        Args:
            status: HTTP status of the response.
            whole: whether the agent received all of it.
        """
        if 400 <= status < 500 and status not in _BUSY:
            text = bytes(self._kept or b"")[:_ERROR_BYTES].decode("utf-8", "replace")
            overflows = OVERFLOW.search(text) is not None
            yield ModelProblem.CONTEXT_OVERFLOW if overflows else ModelProblem.REQUEST_REFUSED
        elif status != 200 or not whole:
            return
        elif not self._has_form:
            yield ModelProblem.REPLY_UNPARSEABLE
        elif self.finish_reason == "context_overflow":
            yield ModelProblem.CONTEXT_OVERFLOW
        elif self.finish_reason == "length":
            # The arguments of its last call are cut, too.
            yield ModelProblem.REPLY_TRUNCATED
        elif self.finish_reason == "malformed_call" or not all(
            map(_is_object, self._arguments.values())
        ):
            yield ModelProblem.ARGUMENTS_UNPARSEABLE

    def _take_lines(self, part: bytes) -> None:
        *lines, rest = part.split(b"\n")
        for line in lines:
            self._line += line
            if self._line.startswith(b"data:"):
                self._read(bytes(self._line[5:]))
            self._line.clear()
        if len(self._line) + len(rest) <= _EVENT_BYTES_MAX:
            self._line += rest

    def _read_usage(self) -> None:
        body, usage = bytes(self._kept or b""), None
        for match in _USAGE.finditer(body):
            text = body[match.end() : match.end() + _USAGE_BYTES].decode("utf-8", "replace")
            with suppress(ValueError, RecursionError):
                usage, _ = json.JSONDecoder().raw_decode(text)
        if usage is None:
            return
        # The form of every dialect.
        form: JsonObject = {"choices": [], "output": [], "content": [], "data": []}
        form |= {"type": "message", "usage": usage, "usageMetadata": usage}
        part = self._dialect.part(form)
        if part is not None:
            self.usage = self.usage.updated(part.usage)

    def _read(self, text: bytes) -> None:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return
        part = self._dialect.part(value) if isinstance(value, dict) else None
        if part is None:
            return
        self._has_form = True
        self.usage = self.usage.updated(part.usage)
        if part.finish_reason:
            self.finish_reason = FINISH_REASONS.get(part.finish_reason, "other")
        for key, written in part.arguments:
            known = self._arguments.get(key, "")
            if len(known) <= _EVENT_BYTES_MAX:
                self._arguments[key] = known + written


def spent_tokens(
    request: ModelRequest, reader: ResponseReader, status: int, *, whole: bool
) -> tuple[int, int]:
    """Return the tokens to charge for a request and for its response.

    Args:
        request: the request.
        reader: has read the response, as far as it arrived.
        status: HTTP status of the response.
        whole: whether all of it arrived.
    """
    if status >= 400:
        return 0, 0
    if not whole:
        # The provider may have reported its input before the agent disconnected.
        return max(request.tokens_max[0], reader.usage.input_tokens), request.tokens_max[1]
    fewest = fewest_tokens(
        request.text_characters,
        len(request.body),
        reader.size_bytes,
        request.dialect,
        streamed=reader.streams,
    )
    return tokens_to_charge(reader.usage, request.tokens_max, fewest)


def read_response(body: bytes, status: int) -> JsonObject:
    """Return a whole response as monitors see it.

    Returns:
        ``status``, and ``body`` (JSON), ``events`` (the data of server-sent events) or ``text``.
    """
    with suppress(ValueError, RecursionError):
        return {"status": status, "body": _strict(body)}
    events: list[Json] = []
    for line in body.splitlines():
        if line.startswith(b"data:"):
            with suppress(ValueError, RecursionError):
                events.append(_strict(line[5:]))
    if events:
        return {"status": status, "events": events}
    return {"status": status, "text": body.decode("utf-8", "replace")}


def _strict(text: bytes) -> Json:
    value: Json = json.loads(text, parse_constant=no_constant, parse_float=finite_number)
    return value


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text or "{}"), dict)
    except (ValueError, RecursionError):
        return False


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

"""Model requests of agents: checks, refusals, memory limits, keys of recorded exchanges.

The gateway parses a request, checks it against the allowed fields, and serializes it again.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from fumehood.core.json_values import Json, JsonObject, canonical_json
from fumehood.core.trace import ModelExchange
from fumehood.gateway.allowed_fields import BETA_HEADERS, beta_names, needs_of
from fumehood.gateway.capabilities import Capability
from fumehood.gateway.costs import InvalidLimit, count_answers, most_tokens, text_length
from fumehood.gateway.dialects import (
    DIALECTS,
    RESPONSES_PATH,
    STREAM_QUERY,
    Dialect,
    read_path,
)
from fumehood.gateway.settings import GatewaySettings, ModelsMode
from fumehood.gateway.strict_json import (
    VALUES_MAX,
    InvalidJson,
    StructureScan,
    parse_object,
    to_bytes,
)


class ModelRefusal(Enum):
    """Why the gateway refused a request.

    The value is an HTTP status for which clients do not retry.
    """

    MALFORMED = 400
    """The request is not one JSON object with a model name."""
    OUT_OF_BUDGET = 402
    """The budget does not allow the request; the work has ended."""
    UNKNOWN_MODEL = 404
    """No provider has the model."""
    ENDED = 410
    """The work had already ended."""
    NOT_RECORDED = 412
    """Models are replayed, and the cassette does not contain the request."""
    TOO_LARGE = 413
    """The request is longer than its limit."""
    CAPABILITY_NOT_GRANTED = 403
    """The request uses a capability that the run does not grant."""
    REFUSED_BY_MONITOR = 423
    """A monitor refused the request, or withheld its response."""
    NO_PRICE = 422
    """The budget limits the price, and the model has no price."""
    REQUEST_FAILED = 417
    """The provider does not answer this request, but answers others."""
    NOT_AVAILABLE = 424
    """No provider can be reached, which ends the episode. This is not a failure of the agent."""


def refuse(kind: ModelRefusal, message: str) -> Response:
    """Return the response to a refused request, in a form that all providers' clients read."""
    name = kind.name.lower()
    error = {"type": name, "code": name, "message": message, "param": None}
    return JSONResponse({"type": "error", "error": error}, kind.value)


class MemoryQuota:
    """Memory for the request bodies of one seat, in bytes. For one event loop."""

    def __init__(self, size_bytes: int) -> None:
        self._left_bytes = size_bytes

    @contextmanager
    def hold(self) -> Iterator[RequestMemory]:
        """Return the memory of one request, and release it when the request is finished."""
        memory = RequestMemory(self)
        try:
            yield memory
        finally:
            self._left_bytes += memory.size_bytes

    def take(self, size_bytes: int) -> bool:
        """Take bytes; return False if too few are left."""
        fits = size_bytes <= self._left_bytes
        if fits:
            self._left_bytes -= size_bytes
        return fits


class RequestMemory:
    """The memory of one request."""

    def __init__(self, quota: MemoryQuota) -> None:
        self.size_bytes = 0
        self._quota = quota

    def take(self, size_bytes: int) -> bool:
        """Take more bytes; return False if too few are left."""
        taken = self._quota.take(size_bytes)
        self.size_bytes += size_bytes if taken else 0
        return taken


REQUESTS_MAX = 256
"""Open requests of one seat, also those whose connection is closed."""
MODEL_NAME_BYTES_MAX = 256
"""Size of a model's name, as UTF-8."""
PROVIDER_HEADERS = frozenset({"content-type", "accept", "anthropic-version", *BETA_HEADERS})
"""Names of the headers that a provider gets, in addition to the key."""
SMALL_BODY_BYTES = 64 * 1024
"""Size of a request that is parsed in less than a few milliseconds."""
_UNKNOWN_PATH = f"unknown path; POST to one of {', '.join(DIALECTS)}"
NO_MODEL = "the request must be one JSON object with a model name"
_MODEL_KEY = b'"model"'
# Each byte of a name may be escaped with six characters, as in \\u0061.
_MODEL_NAME = re.compile(rb'[ \t\r\n]*:[ \t\r\n]*"((?:[^"\\]|\\.){0,1536})"')
_DATED_VERSION = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class Refused(Exception):
    """A request that the gateway does not send."""

    def __init__(
        self, kind: ModelRefusal, message: str, needs: Mapping[str, str] | None = None
    ) -> None:
        """Create it.

        Args:
            kind: the reason.
            message: one line for the agent.
            needs: capability that the run does not grant → field of the request.
        """
        super().__init__(message)
        self.kind = kind
        self.needs = needs or {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """A checked model request."""

    path: str
    dialect: Dialect
    body: bytes
    """Written by the gateway; a provider gets these bytes."""
    headers: Mapping[str, str]
    """Headers for the provider, without the key."""
    model: str
    key: str
    """Hex SHA-256 of path and canonical request."""
    size_bytes: int
    """Size of the request as the agent sent it."""
    tokens_max: tuple[int, int]
    """Largest possible numbers of tokens of the request and of its response."""
    text_characters: int
    """Characters of its text, without images and sounds."""
    answers: int
    """Responses that it asks for."""
    has_tools: bool
    """Whether the provider adds a prompt about tools."""
    is_bounded: bool
    """Whether the size of the request bounds its tokens: it has no images, sounds or documents, and
    refers to nothing at the provider."""

    stream: str
    """How it asks for a stream and for its usage."""

    @property
    def kind(self) -> tuple[str, str, bool, str]:
        """Requests of one kind have equally exact reservations, which responses show alike."""
        return self.path, self.model, self.has_tools, self.stream


class RequestReader:
    """Reads and checks the requests of one seat."""

    def __init__(self, settings: GatewaySettings, threads: Executor) -> None:
        """Create the reader.

        Args:
            settings: providers, grants and limits.
            threads: parse large requests, one at a time.
        """
        self._settings = settings
        self._threads = threads
        self._memory = MemoryQuota(2 * settings.body_bytes_max)
        self._parses = asyncio.Lock()

    def hold_memory(self) -> AbstractContextManager[RequestMemory]:
        """Return the memory of one request, and release it when the request is finished."""
        return self._memory.hold()

    async def read(self, request: Request, memory: RequestMemory) -> ModelRequest:
        """Read and check a request.

        Raises:
            Refused: the gateway does not send it.
        """
        # The URL contains the Host header, which the agent can omit or forge.
        path: str = request.scope["path"]
        if request.query_params.get("alt") == "sse":
            path += STREAM_QUERY
        read = read_path(path) if request.method == "POST" else None
        if read is None:
            raise Refused(ModelRefusal.MALFORMED, _UNKNOWN_PATH)
        body = await _read(request, self._settings.body_bytes_max, memory)
        headers = dict(request.headers)
        if len(body) <= SMALL_BODY_BYTES:
            return check_request(self._settings, path, body, headers)
        if read.model:
            _check_model(self._settings, {"model": read.model})
        else:
            self._check_model_early(body)
        async with self._parses:
            return await asyncio.get_running_loop().run_in_executor(
                self._threads, lambda: check_request(self._settings, path, body, headers)
            )

    def _check_model_early(self, body: bytes) -> None:
        """Refuse a request in which no key ``model`` names a known model, without parsing it."""
        position, has_model_key = body.find(_MODEL_KEY), False
        while position >= 0:
            match = _MODEL_NAME.match(body, position + len(_MODEL_KEY))
            # An escaped name needs a parser.
            if match is not None and (b"\\" in match[1] or _has_model(self._settings, match[1])):
                return
            has_model_key = True
            position = body.find(_MODEL_KEY, position + len(_MODEL_KEY))
        if not has_model_key:
            raise Refused(ModelRefusal.MALFORMED, NO_MODEL)
        message = "no provider has the model of the request; see GET /v1/models"
        raise Refused(ModelRefusal.UNKNOWN_MODEL, message)


def _has_model(settings: GatewaySettings, name: bytes) -> bool:
    replays = settings.mode is ModelsMode.REPLAY
    return replays or settings.provider_of(name.decode("utf-8", "replace")) is not None


def check_request(
    settings: GatewaySettings, path: str, body: bytes, headers: Mapping[str, str]
) -> ModelRequest:
    """Check a request, and write it anew.

    Args:
        settings: providers, grants and limits.
        path: of the URL.
        body: of the request.
        headers: their names in lower case.

    Raises:
        Refused: the gateway does not send it.
    """
    read = read_path(path)
    if read is None:
        raise Refused(ModelRefusal.MALFORMED, _UNKNOWN_PATH)
    dialect = DIALECTS[read.api]
    try:
        parsed = parse_object(body)
        written = to_bytes(parsed)
        model = _check_model(settings, {"model": read.model} if read.model else parsed)
        # A number such as ``1e15`` is longer in the written request.
        size_bytes = max(len(body), len(written))
        tokens = most_tokens(parsed, size_bytes, dialect, settings.output_tokens_max)
    except (InvalidJson, InvalidLimit) as error:
        raise Refused(ModelRefusal.MALFORMED, str(error)) from None
    needed = needs_of(read.api, parsed, headers, model=model, named=settings.names(model))
    missing = {
        capability: field_name
        for capability, field_name in needed.fields.items()
        if capability not in settings.grants
    }
    if missing:
        raise Refused(ModelRefusal.CAPABILITY_NOT_GRANTED, _missing_message(missing), missing)
    if path == RESPONSES_PATH and Capability.STORED_RESPONSES.value not in settings.grants:
        # Without this field, the provider stores the response.
        written = to_bytes({**parsed, "store": False})
    return ModelRequest(
        path=path,
        dialect=dialect,
        body=written,
        headers=_provider_headers(headers, read.streams or parsed.get("stream") is True),
        model=model,
        key=request_key(path, parsed),
        size_bytes=len(body),
        tokens_max=tokens,
        text_characters=text_length(parsed),
        answers=count_answers(parsed, dialect),
        has_tools=bool(parsed.get("tools") or parsed.get("functions")),
        is_bounded=not needed.fields and not needed.has_media,
        stream=canonical_json([parsed.get("stream"), parsed.get("stream_options")]),
    )


def _check_model(settings: GatewaySettings, parsed: JsonObject) -> str:
    model = parsed.get("model")
    if not isinstance(model, str) or not model:
        raise Refused(ModelRefusal.MALFORMED, NO_MODEL)
    name = model.encode()
    if len(name) > MODEL_NAME_BYTES_MAX:
        message = f"a model name has at most {MODEL_NAME_BYTES_MAX} bytes, not {len(name)}"
        raise Refused(ModelRefusal.MALFORMED, message)
    if not _has_model(settings, name):
        shown = model if model.isprintable() else ascii(model)
        message = f"no provider has the model {shown}; see GET /v1/models"
        raise Refused(ModelRefusal.UNKNOWN_MODEL, message)
    return model


def _missing_message(missing: Mapping[str, str]) -> str:
    listed = "; ".join(
        field_name if capability == f"field:{field_name}" else f"{field_name} needs {capability}"
        for capability, field_name in missing.items()
    )
    return (
        f"the run does not grant what the request asks for: {listed}. Leave it out, or the owner "
        f"of the run adds to models.grants: {', '.join(missing)}"
    )


def _provider_headers(headers: Mapping[str, str], streams: bool) -> dict[str, str]:
    """Return the headers of the written request; beta headers are granted at this point."""
    accept = "text/event-stream" if streams else "application/json"
    sent = {"content-type": "application/json", "accept": accept}
    if _DATED_VERSION.fullmatch(version := headers.get("anthropic-version", "")):
        sent["anthropic-version"] = version
    for header in BETA_HEADERS:
        if names := beta_names(headers, header):
            sent[header] = ",".join(names)
    return sent


async def _read(request: Request, limit_bytes: int, memory: RequestMemory) -> bytes:
    parts = list[bytes]()
    scan = StructureScan()
    size_bytes = 0
    # Taking the memory at once admits some of several large requests, instead of none.
    declared = request.headers.get("content-length", "")
    if declared.isdecimal():
        _take(memory, int(declared), limit_bytes)
    async for part in request.stream():
        size_bytes += len(part)
        _take(memory, max(0, size_bytes - memory.size_bytes), limit_bytes)
        if not scan.take(part):
            message = f"a request is limited to {VALUES_MAX} JSON values"
            raise Refused(ModelRefusal.TOO_LARGE, message)
        parts.append(part)
    return b"".join(parts)


def _take(memory: RequestMemory, size_bytes: int, limit_bytes: int) -> None:
    if memory.size_bytes + size_bytes > limit_bytes or not memory.take(size_bytes):
        raise Refused(
            ModelRefusal.TOO_LARGE,
            f"a request is limited to {limit_bytes} bytes, and all open requests to twice as many",
        )


def request_key(path: str, request: Json) -> str:
    """Return the key of a request: hex SHA-256 of its path and its canonical JSON."""
    return sha256(f"{path}\n{canonical_json(request)}".encode("ascii")).hexdigest()


class SeatCassette:
    """The recorded exchanges of one seat in one episode.

    An exchange is found by its request, and by how often the seat has sent this request.
    """

    def __init__(self, seat: str, exchanges: Sequence[ModelExchange]) -> None:
        self._known = {
            (exchange.key, exchange.occurrence): exchange
            for exchange in exchanges
            if exchange.seat == seat
        }
        self._counts = Counter[str]()

    def count(self, key: str) -> int:
        """Count a request and return how often it has been sent, from 1."""
        self._counts[key] += 1
        return self._counts[key]

    def find(self, key: str, occurrence: int) -> ModelExchange | None:
        """Return the recorded exchange; None if there is none."""
        return self._known.get((key, occurrence))

"""Model requests of agents: parsing, refusals, memory limits, keys of recorded exchanges."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from fumehood.core.json_values import Json, JsonObject, canonical_json
from fumehood.core.trace import ModelExchange
from fumehood.gateway.dialects import DIALECTS, Dialect


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
    NO_PRICE = 422
    """The budget limits the price, and the model has no price."""
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


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A parsed model request."""

    path: str
    dialect: Dialect
    body: bytes
    """The original bytes."""
    parsed: JsonObject
    model: str


async def read_request(
    request: Request, limit_bytes: int, memory: RequestMemory
) -> ModelRequest | Response:
    """Read and parse a request, or refuse it.

    Args:
        request: the agent's request.
        limit_bytes: limit of its body.
        memory: memory for its body.
    """
    # The URL contains the Host header, which the agent can omit or forge.
    path: str = request.scope["path"]
    dialect = DIALECTS.get(path)
    if dialect is None or request.method != "POST":
        return refuse(ModelRefusal.MALFORMED, f"unknown path; POST to one of {', '.join(DIALECTS)}")
    body = await _read(request, limit_bytes, memory)
    if body is None:
        message = (
            f"a request is limited to {limit_bytes} bytes, and all open requests to twice as many"
        )
        return refuse(ModelRefusal.TOO_LARGE, message)
    parsed = parse_request(body)
    model = parsed.get("model") if parsed else None
    if parsed is None or not isinstance(model, str):
        return refuse(
            ModelRefusal.MALFORMED, "the request must be one JSON object with a model name"
        )
    return ModelRequest(path, dialect, body, parsed, model)


async def _read(request: Request, limit_bytes: int, memory: RequestMemory) -> bytes | None:
    parts = list[bytes]()
    async for part in request.stream():
        if memory.size_bytes + len(part) > limit_bytes or not memory.take(len(part)):
            return None
        parts.append(part)
    return b"".join(parts)


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


def parse_request(body: bytes) -> dict[str, Json] | None:
    """Parse a request; None if it is not one JSON object with a canonical form."""
    try:
        value = json.loads(body)
        canonical_json(value)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None

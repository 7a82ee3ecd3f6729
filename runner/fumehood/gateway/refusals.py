"""What the gateway itself says to an agent: a closed set, in a form that clients of all providers read."""

from __future__ import annotations

from enum import Enum

from starlette.responses import JSONResponse, Response


class ModelRefusal(Enum):
    """Why a request was not passed on. The value is its HTTP status, of those that clients do not repeat."""

    MALFORMED = 400
    """Not one JSON object that names a model."""
    OUT_OF_BUDGET = 402
    """The budget does not admit the call; the work has ended."""
    UNKNOWN_MODEL = 404
    """No provider has it."""
    ENDED = 410
    """The work had ended before."""
    NOT_RECORDED = 412
    """A run is replayed, and nobody asked this when it was recorded."""
    TOO_LARGE = 413
    """The request is longer than its bound."""
    NO_PRICE = 422
    """Money is bounded, and nobody knows what this model costs."""
    NOT_AVAILABLE = 424
    """No provider can be asked, which ends the episode; it is not the agent's failure."""


def refuse(kind: ModelRefusal, message: str) -> Response:
    """Return the answer to a request that was not passed on."""
    word = kind.name.lower()
    error = {"type": word, "code": word, "message": message, "param": None}
    return JSONResponse({"type": "error", "error": error}, kind.value)

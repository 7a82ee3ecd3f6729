"""Calls of models, which are no tools: their costs are an episode's, their words are the agent's business."""

from __future__ import annotations

from dataclasses import dataclass

from fumehood.core.json_values import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCalled:
    """A model was asked and its answer is over: an event of the trace."""

    seat: str
    model: str
    """As the request names it."""
    request: str
    """Hex SHA-256 of path and canonical request."""
    status: int
    """Of HTTP."""
    response: str
    """Hex SHA-256 of the answer's body, as far as the agent got it."""
    spent: JsonObject
    """By kind of budget, settled."""

    def to_json(self) -> JsonObject:
        """Return the event."""
        return {
            "kind": "model_call",
            "seat": self.seat,
            "model": self.model,
            "request": self.request,
            "status": self.status,
            "response": self.response,
            "spent": self.spent,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelExchange:
    """One request and its answer, whole, as a cassette keeps them."""

    seat: str
    key: str
    """Hex SHA-256 of path and canonical request."""
    occurrence: int
    """How often this seat has asked just this, from 1."""
    request: bytes
    status: int
    content_type: str
    response: bytes

"""Tasks of τ-bench as its own classes tell them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class _Published(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Action(_Published):
    """A call of the gold."""

    name: str
    kwargs: dict[str, Any]


class Record(_Published):
    """One task."""

    user_id: str
    instruction: str
    """For the user alone."""
    actions: tuple[Action, ...]
    outputs: tuple[str, ...]
    """Texts of which each must stand in an answer."""


class Domain(_Published):
    """All tasks of a domain."""

    tasks: tuple[Record, ...]

"""The base of every part of a native record."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Strict(BaseModel):
    """Unknown keys are refused, and no value is converted: 3 is a number, ``"3"`` and ``true`` are not."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

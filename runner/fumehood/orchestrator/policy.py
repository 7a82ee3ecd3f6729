"""Reads the policy of a verdict, ``fumehood.policy/1`` (docs/verdicts.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from fumehood.orchestrator.config import read_model

FORMAT = "fumehood.policy/1"


class LimitRecord(BaseModel):
    """A rate that must not be exceeded."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    of: Literal["near_miss", "minor", "major", "catastrophic", "failure"]
    """A severity class, which includes the more severe ones, or any failure."""
    max_rate: Annotated[float, Field(gt=0, lt=1)]


class PolicyFile(BaseModel):
    """What a verdict demands."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    format: Literal["fumehood.policy/1"]
    limits: Annotated[list[LimitRecord], Field(min_length=1)]
    error_level: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    """Largest probability of a wrong ``passed``."""
    max_missing: Annotated[float, Field(ge=0, lt=1)] = 0.05
    """Largest part of the planned episodes that may have no score."""

    @field_validator("limits")
    @classmethod
    def _names_each_once(cls, limits: list[LimitRecord]) -> list[LimitRecord]:
        names = [limit.of for limit in limits]
        for index, name in enumerate(names):
            if name in names[:index]:
                raise ValueError(f"limit {name!r} twice; keep one of them")
        return limits


def read_policy(path: Path) -> PolicyFile:
    """Return the policy in a file.

    Raises:
        InputError: the file cannot be read, or is not a policy.
    """
    content = "'limits', such as: limits: [{of: major, max_rate: 0.01}]"
    return read_model(path, PolicyFile, f"'format: {FORMAT}' and {content}")

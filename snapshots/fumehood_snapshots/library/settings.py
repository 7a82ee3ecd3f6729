"""``data_mode: offline | live | record | replay`` in a run's settings, and what each of them needs.

Imports no library but the one that checks settings, so that whoever reads a configuration need not have more.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from fumehood_snapshots.errors import SnapshotInputError
from fumehood_snapshots.extraction.main_text import DEFAULT as DEFAULT_EXTRACTOR
from fumehood_snapshots.web.policy import FetchPolicy


class SearchConfig(BaseModel):
    """Who answers live searches."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    provider: Literal["searxng", "site-index"]
    url: str
    """The endpoint of the search engine, or the site's index."""
    private: bool = False
    """Whether it may have an address that is not public, such as an engine on this machine."""


class EnvironmentConfig(BaseModel):
    """What agents' searches and pages come from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    data_mode: Literal["offline", "live", "record", "replay"] = "offline"
    snapshot: Path | None = None
    """Of ``offline``; also of ``replay``, if the snapshot was built from a recording."""
    recording: Path | None = None
    """Where ``record`` appends and ``replay`` reads."""
    fetch: FetchPolicy | None = None
    """Of ``live`` and ``record``."""
    search: SearchConfig | None = None
    extractor: str = DEFAULT_EXTRACTOR
    snippet_chars: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _has_what_its_kind_needs(self) -> EnvironmentConfig:
        needs = {
            "offline": self.snapshot is not None,
            "live": self.fetch is not None,
            "record": self.fetch is not None and self.recording is not None,
            "replay": self.recording is not None or self.snapshot is not None,
        }
        if not needs[self.data_mode]:
            what = {"offline": "snapshot", "live": "fetch", "record": "fetch and recording"}
            raise ValueError(
                f"data_mode {self.data_mode} needs {what.get(self.data_mode, 'recording or snapshot')}"
            )
        return self


def read_settings(told: Mapping[str, Any]) -> EnvironmentConfig:
    """Return checked settings.

    Raises:
        SnapshotInputError: one is missing or does not fit; names the first.
    """
    try:
        return EnvironmentConfig.model_validate(told)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        what = first["msg"].removeprefix("Value error, ")
        raise SnapshotInputError(f"{where}: {what}" if where else what) from None

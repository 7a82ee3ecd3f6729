"""Settings of the data mode of a run: ``offline``, ``live``, ``record`` or ``replay``.

Imports only pydantic, so that reading a configuration needs no extra.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from fumehood_snapshots.errors import SnapshotInputError
from fumehood_snapshots.extraction.main_text import DEFAULT as DEFAULT_EXTRACTOR
from fumehood_snapshots.web.policy import FetchPolicy

RECORDING_MB = 4096


class SearchConfig(BaseModel):
    """The provider of live searches."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    provider: Literal["searxng", "site-index"]
    url: str
    """The endpoint of the search engine, or the URL of the site index."""
    private: bool = False
    """Whether it may have a private address, such as an engine on this machine."""


class EnvironmentConfig(BaseModel):
    """The source of searches and pages."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    data_mode: Literal["offline", "live", "record", "replay"] = "offline"
    snapshot: Path | None = None
    """For ``offline``, and for ``replay`` if the snapshot was built from a recording."""
    recording: Path | None = None
    """Recording that ``record`` extends and ``replay`` reads."""
    recording_mb: int = Field(default=RECORDING_MB, ge=1)
    """Size of the recording, MiB. When it is reached, nothing is fetched any more."""
    fetch: FetchPolicy | None = None
    """For ``live`` and ``record``."""
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
                f"data_mode {self.data_mode} needs "
                f"{what.get(self.data_mode, 'recording or snapshot')}"
            )
        return self


def read_settings(settings: Mapping[str, Any]) -> EnvironmentConfig:
    """Return validated settings.

    Raises:
        SnapshotInputError: a setting is missing or invalid; names the first.
    """
    try:
        return EnvironmentConfig.model_validate(settings)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        what = first["msg"].removeprefix("Value error, ")
        raise SnapshotInputError(f"{where}: {what}" if where else what) from None

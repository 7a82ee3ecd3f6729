"""The base of records that a benchmark published.

Services import it, so it imports nothing that their image lacks.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class PublishedRecord(BaseModel):
    """Base of the parts of records that others publish: unread keys are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)

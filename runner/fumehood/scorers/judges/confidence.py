"""How sure an answer says it is."""

from __future__ import annotations

import re

_CONFIDENCE = re.compile(
    r"^\W*confidence\W*:\W*(\d{1,3}(?:\.\d+)?)\s*%?", re.IGNORECASE | re.MULTILINE
)


def read_confidence(text: str) -> float | None:
    """Return a stated confidence between 0 and 1; None where there is none."""
    found = _CONFIDENCE.findall(text)
    share = float(found[-1]) / 100 if found else None
    return share if share is not None and share <= 1 else None

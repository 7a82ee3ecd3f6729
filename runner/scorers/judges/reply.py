"""Reads what a model says that was asked to judge; for judges that ask one.

``correct: yes`` or ``correct: no`` decides, and the last one counts, because a model may quote the response
before it. BrowseComp's published grader compares the whole match, "correct: yes", with "yes" and so finds
every answer wrong; the group is what has to be compared.
"""

from __future__ import annotations

import re

_CORRECT = re.compile(r"^\W*correct\W*:\W*(yes|no)\b", re.IGNORECASE | re.MULTILINE)
_CONFIDENCE = re.compile(r"^\W*confidence\W*:\W*(\d{1,3}(?:\.\d+)?)\s*%?", re.IGNORECASE | re.MULTILINE)


def read_verdict(reply: str) -> bool | None:
    """Return the verdict; None where there is none, which is ungraded and not wrong."""
    found = _CORRECT.findall(reply)
    return found[-1].lower() == "yes" if found else None


def read_confidence(text: str) -> float | None:
    """Return a stated confidence between 0 and 1; None where there is none."""
    found = _CONFIDENCE.findall(text)
    share = float(found[-1]) / 100 if found else None
    return share if share is not None and share <= 1 else None

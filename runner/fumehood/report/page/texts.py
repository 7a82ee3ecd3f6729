"""Whatever a task or an agent wrote, as text that a page may hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fumehood.report.safe_text import safe

TEXT_CHARS_MAX = 4000
"""More of one text is not kept in a page; ``fumehood show --json`` prints all of it."""
LINE_CHARS = 100
"""JSON longer than this is laid out over several lines."""


def shown(text: str) -> str:
    """Return text without anything that a browser would obey, cut to what a page keeps."""
    harmless = safe(text[: TEXT_CHARS_MAX + 1])
    if len(text) <= TEXT_CHARS_MAX:
        return harmless
    return f"{harmless[:TEXT_CHARS_MAX]}… ({len(text) - TEXT_CHARS_MAX:,} more characters)"


def shown_json(value: Any) -> str:
    """Return a JSON value as text: on one line where it is short."""
    if isinstance(value, Mapping):
        value = dict(value)
    line = json.dumps(value, ensure_ascii=False)
    return shown(
        line if len(line) <= LINE_CHARS else json.dumps(value, ensure_ascii=False, indent=1)
    )

"""Escapes and shortens text of tasks and agents for a page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fumehood.core.json_values import spaced_json
from fumehood.report.safe_text import safe

TEXT_CHARS_MAX = 4000
"""Longer texts are cut; ``fumehood show --json`` prints all of them."""
LINE_CHARS = 100
"""Longer JSON is indented over several lines."""
# ``json.dumps`` would create an encoder for each value.
_indented = json.JSONEncoder(ensure_ascii=False, indent=1).encode


def shown(text: str) -> str:
    """Escape text, and cut it to the length that a page keeps."""
    harmless = safe(text[: TEXT_CHARS_MAX + 1])
    if len(text) <= TEXT_CHARS_MAX:
        return harmless
    return f"{harmless[:TEXT_CHARS_MAX]}… ({len(text) - TEXT_CHARS_MAX:,} more characters)"


def shown_json(value: Any) -> str:
    """Return a JSON value as text, on one line if it is short."""
    if isinstance(value, Mapping):
        value = dict(value)
    line = spaced_json(value)
    return shown(line if len(line) <= LINE_CHARS else _indented(value))

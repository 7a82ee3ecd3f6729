"""Escapes and shortens text of tasks and agents for a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fumehood.core.json_values import short_json, spaced_json
from fumehood.report.safe_text import safe

TEXT_CHARS_MAX = 4000
"""Longer texts are cut; ``fumehood show --json`` prints all of them."""
LINE_CHARS = 100
"""Longer JSON is indented over several lines."""


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


def _indented(value: Any, before: str = "\n") -> str:
    """Return JSON with one line per member, as ``json.dumps`` with an indent of 1.

    The encoder of Python writes indented JSON without its compiled part, in twice the time.

    Args:
        value: to write.
        before: what begins the line of the value's last bracket.
    """
    inner = f"{before} "
    if isinstance(value, dict) and value:
        members = (f"{short_json(key)}: {_indented(item, inner)}" for key, item in value.items())
        return f"{{{inner}{f',{inner}'.join(members)}{before}}}"
    if isinstance(value, list) and value:
        items = (_indented(item, inner) for item in value)
        return f"[{inner}{f',{inner}'.join(items)}{before}]"
    return short_json(value)

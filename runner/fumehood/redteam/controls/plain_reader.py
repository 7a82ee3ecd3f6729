"""A reader that prints records as they are, as the commands would without their escapes."""

from __future__ import annotations

import json
from collections.abc import Iterator

from fumehood.core.json_values import Json
from fumehood.orchestrator.episode_runner import Attempt
from fumehood.redteam.record_checks import active_markup_in, control_characters


def plain_reader_breaches(attempt: Attempt) -> Iterator[str]:
    """Yield how an attack would mislead a reader that escapes nothing."""
    text = "\n".join(_texts([json.loads(record.event_json) for record in attempt.records]))
    yield from control_characters(text)
    yield from active_markup_in("the page", text)
    forged = sum(_is_event(line) for line in text.splitlines())
    if forged:
        yield f"{forged} forged events were read"


def _texts(value: Json) -> Iterator[str]:
    """Yield every name and text in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
    elif isinstance(value, dict):
        for name, part in value.items():
            yield name
            yield from _texts(part)


def _is_event(line: str) -> bool:
    try:
        value = json.loads(line)
    except ValueError:
        return False
    return isinstance(value, dict) and bool({"kind", "outcome"} & value.keys())

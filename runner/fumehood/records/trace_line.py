"""One line of a trace on disk."""

from __future__ import annotations

import json

from fumehood.core.json_values import canonical_json
from fumehood.core.trace import Record


def record_line(record: Record, isolation: str | None = None) -> str:
    """Return the line of a record: one JSON object, canonical as its event is.

    Args:
        record: of a chain that was verified, so its event is ASCII on one line.
        isolation: said beside the record, where it is.
    """
    beside = "" if isolation is None else f'"isolation":{canonical_json(isolation)},'
    return (
        f'{{"duration_us":{record.duration_us},"event":{record.event_json},"hash":"{record.hash}",'
        f'{beside}"wall_ms":{record.wall_ms}}}\n'
    )


def record_from_json(line: str) -> Record:
    """Return the record that a line holds.

    Raises:
        KeyError, TypeError, ValueError: it holds none.
    """
    value = json.loads(line)
    return Record(
        canonical_json(value["event"]), value["hash"], value["wall_ms"], value["duration_us"]
    )

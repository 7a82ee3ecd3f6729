"""Reads the limits that a Harbor task sets for its boxes and for the time of its agent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from fumehood.benchmarks.harbor.unsupported import Unsupported

CPUS_MAX = 1024
SIZE_MAX_MB = 1 << 24
SECONDS_MAX = 7 * 86_400


def limit_of(value: Any, place: str, most: float, least: float = 0.01) -> int | float | None:
    """Return a limit; None if the task sets none.

    Args:
        value: what the task states.
        place: in ``task.toml``, for messages.
        most: maximum.
        least: minimum. For an engine, 0 would mean no limit.

    Raises:
        Unsupported: it is no number from ``least`` to ``most``.
    """
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not least <= value <= most or math.isnan(value):
        raise Unsupported(f"{place} {value!r}, which is no number from {least:,} to {most:,}")
    number: int | float = value
    return number


def seconds_of(table: Mapping[str, Any], place: str) -> float | None:
    """Return the time limit ``timeout_sec`` of a table, in seconds; None if it sets none.

    Raises:
        Unsupported: it is no number of seconds.
    """
    seconds = limit_of(table.get("timeout_sec"), f"{place}.timeout_sec", SECONDS_MAX)
    return None if seconds is None else float(seconds)

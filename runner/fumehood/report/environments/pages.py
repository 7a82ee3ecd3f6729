"""What became of the pages that agents opened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fumehood.core.evidence import Exchange
from fumehood.core.json_values import Json

OPENING = "open_page"
LOST = frozenset({"fetch_failed", "not_found", "not_recorded"})
"""Codes of the library that say that a page cannot be had; others are about the call."""


@dataclass(frozen=True, slots=True)
class PageCounts:
    """Of the pages that were opened in one environment."""

    opened: int
    """Calls that a library answered or said no to; a fault's answer says nothing about a page."""
    lost: Mapping[str, int]
    """By reason, such as ``timed_out`` or ``not_found``."""

    @property
    def lost_share(self) -> float | None:
        """Link rot: the share that could not be had; None where no page was opened."""
        return sum(self.lost.values()) / self.opened if self.opened else None


def count_pages(calls: Iterable[Exchange]) -> PageCounts:
    """Count the pages that were opened, and why some could not be had."""
    opened, lost = 0, Counter[str]()
    for call in calls:
        if call.tool_name != OPENING or call.strikes:
            continue
        if call.failure is None:
            opened += 1
        elif call.failure.code in LOST:
            opened += 1
            lost[_reason(call.failure.code, call.failure.message)] += 1
    return PageCounts(opened, dict(sorted(lost.items())))


def changed_pages(first: Iterable[Exchange], second: Iterable[Exchange]) -> tuple[int, int]:
    """Return how many pages were read from their beginning on both sides, and how many read otherwise."""
    ours, theirs = _texts(first), _texts(second)
    shared = ours.keys() & theirs.keys()
    return len(shared), sum(ours[name] != theirs[name] for name in shared)


def _reason(code: str, message: str) -> str:
    return message.partition(":")[0] if code == "fetch_failed" else code


def _texts(calls: Iterable[Exchange]) -> dict[str, Json]:
    texts: dict[str, Json] = {}
    for call in calls:
        output = call.output or {}
        if call.tool_name == OPENING and output.get("offset") == 0:
            texts.setdefault(str(output.get("url") or output.get("id")), output.get("text"))
    return texts

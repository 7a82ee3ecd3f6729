"""What extraction gives, and what it says when it cannot."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Extracted:
    """Title and text of a page."""

    title: str
    text: str


class UnreadablePageError(Exception):
    """A page that gives no document: listed by a build, reported by a live fetch, never fatal."""

"""What a build says while it works."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Told how far each stage is; a bar, a log, or nothing."""

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Take note.

        Args:
            stage: such as ``"reading"``; a new one begins when the name changes.
            done: bytes, chunks or terms so far.
            total: of the same; None where nobody knows.
        """
        ...


def silent(stage: str, done: int, total: int | None) -> None:
    """Take no note."""

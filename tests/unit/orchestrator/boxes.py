"""Boxes in memory, whose end a test decides."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

from fumehood.core.errors import FumehoodError
from fumehood.engines.engine import (
    BoxOutput,
    BoxSpec,
    Exit,
    ExitReason,
    Image,
)

KILLED = Exit(137, ExitReason.KILLED)
NORMAL = Exit(0, ExitReason.EXITED)


class MemoryBox:
    """Ends with ``ended`` when it is waited for; without it, when it is killed."""

    name = "box"

    def __init__(self, ended: Exit | None = None, text: bytes = b"") -> None:
        self.killed = Event()
        self.waits_ms: list[int] = []
        self._ended = ended
        self._text = text

    def host_pid(self) -> int | None:
        return None

    def wait(self, timeout_ms: int) -> Exit | None:
        self.waits_ms.append(timeout_ms)
        if self._ended is not None:
            return self._ended
        return KILLED if self.killed.wait(timeout_ms / 1000) else None

    def kill(self, reason: ExitReason = ExitReason.KILLED) -> None:
        self.killed.set()

    def close(self) -> BoxOutput:
        return BoxOutput(self._text, b"", len(self._text), 0)


def starting(boxes: dict[str, MemoryBox | FumehoodError]) -> Callable[[BoxSpec], MemoryBox]:
    """Return what starts prepared boxes, by image reference; an error is raised instead."""

    def start(spec: BoxSpec) -> MemoryBox:
        box = boxes[spec.image.reference]
        if isinstance(box, FumehoodError):
            raise box
        return box

    return start


def image(reference: str) -> Image:
    return Image(reference, "", ())

"""Boxes and engines in memory, whose end a test decides."""

from __future__ import annotations

from threading import Event

from fumehood.core.errors import FumehoodError
from fumehood.engines.engine import AgentSource as Source
from fumehood.engines.engine import (
    BoxOutput,
    BoxSpec,
    Exit,
    ExitReason,
    Image,
    Isolation,
    OwnerCheck,
    Readiness,
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

    def kill(self) -> None:
        self.killed.set()

    def close(self) -> BoxOutput:
        return BoxOutput(self._text, b"", len(self._text), 0)


class MemoryEngine:
    """Starts the boxes that a test prepared, by image reference; an error is raised instead."""

    name = "memory"
    isolation = Isolation.NONE
    unenforced: tuple[str, ...] = ()

    def __init__(self, boxes: dict[str, MemoryBox | FumehoodError]) -> None:
        self._boxes = boxes

    def check(self) -> Readiness:
        return Readiness(True, "in memory")

    def prepare(self, source: Source) -> Image:
        return image(source.name)

    def start(self, spec: BoxSpec) -> MemoryBox:
        box = self._boxes[spec.image.reference]
        if isinstance(box, FumehoodError):
            raise box
        return box

    def reap(self, is_owned: OwnerCheck) -> int:
        return 0

    def close(self) -> None:
        pass


def image(reference: str) -> Image:
    return Image(reference, "", ())

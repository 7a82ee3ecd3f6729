"""How the box of one of several seats ended early."""

from __future__ import annotations

from dataclasses import dataclass

from fumehood.engines.engine import Exit


@dataclass(frozen=True, slots=True)
class SeatExit(Exit):
    """How the box of one of several seats stopped, before the work of its seat had ended."""

    seat: str

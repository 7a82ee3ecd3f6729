"""An answer on its way to an agent, and what is owed when it is over, however it came to be over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

from fumehood.gateway.provider_client import Asked
from fumehood.gateway.reading import AnswerReader


class Passing:
    """One answer; ended exactly once."""

    def __init__(
        self,
        asked: Asked,
        reader: AnswerReader,
        finish: Callable[[bool], Coroutine[Any, Any, None]],
    ) -> None:
        """Begin.

        Args:
            asked: the answer.
            reader: reads along.
            finish: told at the end whether the answer passed whole.
        """
        self._asked = asked
        self._reader = reader
        self._finish = finish
        self._is_whole = False
        self._is_over = False

    async def parts(self) -> AsyncIterator[bytes]:
        """Yield the answer as it comes, and end it before the agent is told that it was all."""
        try:
            async for part in self._asked.response.aiter_raw():
                self._reader.take(part)
                yield part
            self._is_whole = True
        finally:
            await self.end()

    async def end(self) -> None:
        """Settle what the answer has cost, if that is not done yet."""
        if not self._is_over:
            self._is_over = True
            await asyncio.shield(self._finish(self._is_whole))

"""Keeps the requests of a seat within its bounds of tokens and money, except one request.

A reservation is exact only if the provider's count agrees. Until a first response to a kind of
request has shown that, and for a request whose size does not bound its tokens, no other request of
the seat runs. After a request that needed more than its reservation, requests run one by one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager


class RequestOrder:
    """Decides which requests of one seat run beside each other. For one event loop."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        """Requests enter in the order of their arrival."""
        self._changed = asyncio.Condition()
        self._running = 0
        self._is_alone = False
        self._kinds = set[Hashable]()
        """Kinds of requests whose reservations were exact so far."""
        self._has_overrun = False

    @asynccontextmanager
    async def enter(self, kind: Hashable, *, is_bounded: bool) -> AsyncIterator[None]:
        """Wait until a request may run.

        Args:
            kind: of the request; a reservation is as exact as those of the same kind.
            is_bounded: whether its size bounds its tokens.
        """

        def needs_to_be_alone() -> bool:
            return self._has_overrun or not is_bounded or kind not in self._kinds

        async with self._turn, self._changed:
            await self._changed.wait_for(
                lambda: self._running == 0 or not (self._is_alone or needs_to_be_alone())
            )
            self._running += 1
            self._is_alone = needs_to_be_alone()
        try:
            yield
        finally:
            async with self._changed:
                self._running -= 1
                self._is_alone = False
                self._changed.notify_all()

    def report(self, kind: Hashable, *, answered: bool, overrun: bool) -> None:
        """Note that a response has ended.

        Args:
            kind: of its request.
            answered: whether it was a complete answer; an error, or a part, shows nothing.
            overrun: whether it needed more than its reservation.
        """
        if answered:
            self._kinds.add(kind)
        self._has_overrun |= overrun

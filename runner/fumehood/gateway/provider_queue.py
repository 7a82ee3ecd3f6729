"""The queue of requests to one provider, which enforces the provider's limits.

Episodes take turns, so an episode with many requests does not delay the others. The limits per
minute apply to every window of 60 seconds.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable

from fumehood.gateway.settings import Provider

WINDOW_S = 60.0
REPORT_INTERVAL_S = 1.0
"""Longest time until a waiting request reports that it waits."""

Waited = Callable[[int, int], None]
"""Receives start and end of a wait, milliseconds of the monotonic clock."""


class Admission:
    """A request that was admitted; released exactly once."""

    def __init__(self, queue: ProviderQueue, tokens: int) -> None:
        self._queue = queue
        self._at_s = queue.now_s()
        self.tokens = tokens

    def is_counted(self, now_s: float) -> bool:
        """Return whether the limits per minute still count this request."""
        return now_s < self.expires_s

    @property
    def expires_s(self) -> float:
        """When the limits per minute stop counting this request."""
        return self._at_s + WINDOW_S

    def used(self, tokens: int) -> None:
        """Replace the estimated tokens by the reported ones."""
        self.tokens = tokens

    def release(self) -> None:
        """Free the place of this request."""
        self._queue.release()


class ProviderQueue:
    """Admits the requests to one provider. For one event loop."""

    def __init__(
        self, provider: Provider, calls_at_once: int, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        """Create the queue.

        Args:
            provider: with its limits.
            calls_at_once: parallel requests, if the provider sets no limit.
            now_s: the clock, seconds.
        """
        self._provider = provider
        self._calls_at_once = provider.concurrent_calls or calls_at_once
        self._has_window = bool(provider.requests_per_minute or provider.tokens_per_minute)
        self.now_s = now_s
        self._running = 0
        self._recent = deque[Admission]()
        self._waiting: OrderedDict[str, deque[tuple[asyncio.Future[Admission], int]]] = (
            OrderedDict()
        )
        """By episode, in the order of the next turns."""
        self._timer: asyncio.TimerHandle | None = None

    async def admit(self, episode: str, tokens: int, waited: Waited) -> Admission:
        """Wait for a place.

        Args:
            episode: of the request; episodes take turns.
            tokens: estimated tokens of request and response.
            waited: receives each wait, at least every second.
        """
        future: asyncio.Future[Admission] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(episode, deque()).append((future, tokens))
        self.admit_next()
        last_ms = time.monotonic_ns() // 1_000_000
        try:
            while not future.done():
                await asyncio.wait({future}, timeout=REPORT_INTERVAL_S)
                now_ms = time.monotonic_ns() // 1_000_000
                waited(last_ms, now_ms)
                last_ms = now_ms
        except BaseException:
            if future.done() and not future.cancelled():
                future.result().release()
            future.cancel()
            raise
        return future.result()

    def release(self) -> None:
        """Free one place."""
        self._running -= 1
        self.admit_next()

    def admit_next(self) -> None:
        """Admit the requests that the limits allow now."""
        while self._waiting:
            episode, requests = next(iter(self._waiting.items()))
            future, tokens = requests[0]
            if not future.cancelled():
                delay_s = self._delay_s(tokens)
                if delay_s is None:
                    return
                if delay_s > 0:
                    self._retry_in(delay_s)
                    return
                self._running += 1
                admission = Admission(self, tokens)
                if self._has_window:
                    self._recent.append(admission)
                future.set_result(admission)
            requests.popleft()
            self._waiting.move_to_end(episode)
            if not requests:
                del self._waiting[episode]

    def _delay_s(self, tokens: int) -> float | None:
        """Return the time until a request may be sent; None until another one has ended."""
        if self._running >= self._calls_at_once:
            return None
        now_s = self.now_s()
        while self._recent and not self._recent[0].is_counted(now_s):
            self._recent.popleft()
        # A request that alone exceeds the limit is sent when no other one is counted.
        free_at_s = now_s
        requests_max = self._provider.requests_per_minute
        if requests_max is not None and len(self._recent) >= requests_max:
            free_at_s = self._recent[len(self._recent) - requests_max].expires_s
        tokens_max = self._provider.tokens_per_minute
        if tokens_max is not None:
            counted = sum(admission.tokens for admission in self._recent)
            for admission in self._recent:
                if counted + tokens <= tokens_max:
                    break
                counted -= admission.tokens
                free_at_s = max(free_at_s, admission.expires_s)
        return free_at_s - now_s

    def _retry_in(self, delay_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(delay_s, self.admit_next)

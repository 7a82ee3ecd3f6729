"""The queue of requests to one provider, which enforces the provider's limits.

Episodes take turns, and an episode uses at most its share of a limit while others use it, so an
episode with many or large requests does not delay the others. An episode that is between two
requests keeps its share of the places for 60 seconds. The limits per minute apply to every window
of 60 seconds.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection, Sequence

from fumehood.gateway.settings import Provider

WINDOW_S = 60.0
REPORT_INTERVAL_S = 1.0
"""Longest time until a waiting request reports that it waits."""

Waited = Callable[[int, int], None]
"""Receives start and end of a wait, milliseconds of the monotonic clock."""


class Admission:
    """A request that was admitted."""

    def __init__(self, queue: ProviderQueue, episode: str, tokens: int) -> None:
        self._queue = queue
        self._at_s = queue.now_s()
        self._is_released = False
        self.episode = episode
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
        self.tokens = max(0, tokens)

    def release(self) -> None:
        """Free the place of this request. Idempotent."""
        if not self._is_released:
            self._is_released = True
            self._queue.release(self.episode)


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
        self._running = Counter[str]()
        """Requests by episode."""
        self._used_s = dict[str, float]()
        """By episode, when it last used a place."""
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
        self._waiting.setdefault(episode, deque()).append((future, max(0, tokens)))
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

    def release(self, episode: str) -> None:
        """Free one place of an episode."""
        self._used_s[episode] = self.now_s()
        self._running[episode] -= 1
        if not self._running[episode]:
            del self._running[episode]
        self.admit_next()

    def forget(self, episode: str) -> None:
        """Note that an episode without requests has ended, and leave its share to the others."""
        self._used_s.pop(episode, None)
        self.admit_next()

    def admit_next(self) -> None:
        """Admit the requests that the limits allow now."""
        while self._admit_one():
            pass

    def _admit_one(self) -> bool:
        """Admit or discard one request; return False if every episode has to wait."""
        delays_s = []
        for episode, requests in self._waiting.items():
            future, tokens = requests[0]
            delay_s = None if future.cancelled() else self._delay_s(episode, tokens)
            if future.cancelled() or delay_s == 0:
                if not future.cancelled():
                    future.set_result(self._admission(episode, tokens))
                requests.popleft()
                self._waiting.move_to_end(episode)
                if not requests:
                    del self._waiting[episode]
                return True
            if delay_s is not None:
                delays_s.append(delay_s)
        if delays_s:
            self._retry_in(min(delays_s))
        return False

    def _admission(self, episode: str, tokens: int) -> Admission:
        # An agent chooses how many tokens its request may need. More than the share of its episode
        # would stop all others for a minute.
        share = _share(self._provider.tokens_per_minute, self._recent_episodes())
        admission = Admission(self, episode, tokens if share is None else min(tokens, share))
        self._running[episode] += 1
        if self._has_window:
            self._recent.append(admission)
        return admission

    def _delay_s(self, episode: str, tokens: int) -> float | None:
        """Return the time until a request may be sent; None until another one has ended."""
        now_s = self.now_s()
        if self._running.total() >= self._calls_at_once:
            return None
        active = self._running.keys() | self._waiting.keys()
        idle_until_s = self._idle_until_s(active, now_s)
        episodes = len(active) + len(idle_until_s)
        if self._running[episode] * episodes >= self._calls_at_once:
            return min(idle_until_s) - now_s if idle_until_s else None
        while self._recent and not self._recent[0].is_counted(now_s):
            self._recent.popleft()
        episodes = self._recent_episodes()
        requests_max = self._provider.requests_per_minute
        tokens_max = self._provider.tokens_per_minute
        own_tokens_max = _share(tokens_max, episodes)
        if own_tokens_max is not None:
            tokens = min(tokens, own_tokens_max)
        own = [admission for admission in self._recent if admission.episode == episode]
        return max(
            0.0,
            _free_at_s(self._recent, tokens, requests_max, tokens_max) - now_s,
            _free_at_s(own, tokens, _share(requests_max, episodes), own_tokens_max) - now_s,
        )

    def _idle_until_s(self, active: Collection[str], now_s: float) -> list[float]:
        """Return when the episodes that are between two requests lose their share of the places."""
        first_s = now_s - WINDOW_S
        self._used_s = {name: used_s for name, used_s in self._used_s.items() if used_s > first_s}
        return [used_s + WINDOW_S for name, used_s in self._used_s.items() if name not in active]

    def _recent_episodes(self) -> int:
        return len({admission.episode for admission in self._recent} | self._waiting.keys())

    def _retry_in(self, delay_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(delay_s, self.admit_next)


def _free_at_s(
    counted: Sequence[Admission], tokens: int, requests_max: int | None, tokens_max: int | None
) -> float:
    """Return when limits per minute allow a request; 0 if they allow it now.

    Args:
        counted: the requests that the limits count, by time.
        tokens: of the request. One that exceeds the limit alone is sent when no other one is
            counted.
        requests_max: limit of requests per minute; None for no limit.
        tokens_max: limit of tokens per minute; None for no limit.
    """
    free_at_s = 0.0
    if requests_max is not None and len(counted) >= requests_max:
        free_at_s = counted[len(counted) - requests_max].expires_s
    if tokens_max is not None:
        counted_tokens = sum(admission.tokens for admission in counted)
        for admission in counted:
            if counted_tokens + tokens <= tokens_max:
                break
            counted_tokens -= admission.tokens
            free_at_s = max(free_at_s, admission.expires_s)
    return free_at_s


def _share(limit: int | None, episodes: int) -> int | None:
    """Return what one of several episodes may use of a limit."""
    return None if limit is None else -(-limit // max(1, episodes))

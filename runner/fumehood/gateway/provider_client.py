"""Sends requests to model providers, retries them while a provider is busy, and checks whether the
provider or the request is the cause of a failure.

A request passes the queue of its provider before each attempt. The caller learns of every wait, so
that no wait is charged to an agent.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import httpx2
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt
from tenacity.wait import wait_exponential_jitter

from fumehood.gateway.dialects import key_header
from fumehood.gateway.health_check import REFUSED_KEY_STATUS, HealthCheck, HealthChecker
from fumehood.gateway.provider_queue import Admission, ProviderQueue
from fumehood.gateway.settings import GatewaySettings, Provider

RETRIED_STATUS = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Statuses after which a request is retried. 529 is Anthropic's status for overload."""
CHECKED_STATUS = REFUSED_KEY_STATUS | {500, 502, 503, 504, 529}
"""Lasting statuses that may be a failure of the provider. 429 is not among them, because the size
of a request can cause it."""

RECHECK_S = 2.0
"""Pause between two checks while a provider may still work on requests of the episode."""
ABANDONED_MS = 1_000
"""A provider may still work on a request that failed after this time or later: a proxy can give up
before the server behind it does."""
UNREAD_BYTES_MAX = 16 << 20
"""Part of a response that is kept for a slow reader."""


class ProviderFailed(Exception):
    """A provider cannot be used: the gateway's check of it failed, too.

    The message contains the provider's name, never the key.
    """

    def __init__(self, reason: str, check: HealthCheck) -> None:
        super().__init__(f"{reason}; a request of the gateway's own: {check.result}")
        self.reason = reason
        self.check = check


class RequestFailed(Exception):
    """A provider does not answer this request, but answers the gateway's check."""

    def __init__(self, reason: str, check: HealthCheck) -> None:
        super().__init__(reason)
        self.reason = reason
        self.check = check


class ResponseTooLarge(Exception):
    """A response exceeds the limit of the gateway. Its request is charged as one whose response
    broke."""

    def __init__(self, bytes_max: int) -> None:
        super().__init__(f"the response of the provider exceeds {bytes_max} bytes")
        self.bytes_max = bytes_max


class _Retry(Exception):
    def __init__(self, reason: str, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.wait_s = wait_s
        """Wait that the provider requests, seconds; None if it requests none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderRequest:
    """A request to a provider, as the gateway wrote it."""

    provider: Provider
    path: str
    """Below the provider's address."""
    model: str
    body: bytes
    headers: Mapping[str, str]
    """Without the key."""
    episode: str
    """The episodes of one provider take turns."""
    seat: str
    tokens: int
    """Estimated tokens of the request and its response, for the limit per minute."""


class Waits(Protocol):
    """Learns when a request waits. Times are milliseconds of the monotonic clock."""

    def queued(self, began_ms: int, ended_ms: int) -> None:
        """Note that the request waited for its provider's queue."""
        ...

    def attempt(self, began_ms: int) -> None:
        """Note that an attempt began."""
        ...

    def failed(self) -> None:
        """Note that the attempt failed and is repeated."""
        ...


class NoWaits:
    """Ignores all waits."""

    def queued(self, began_ms: int, ended_ms: int) -> None:
        """Do nothing."""

    def attempt(self, began_ms: int) -> None:
        """Do nothing."""

    def failed(self) -> None:
        """Do nothing."""


@runtime_checkable
class StartedResponse(Protocol):
    """A response that has begun."""

    status: int
    content_type: str
    delay_ms: tuple[int, int]
    """Start and end of the delay by retries, on the monotonic clock. Both are equal if the response
    is a lasting failure, which the agent may have caused."""
    check: HealthCheck | None
    """Why a failure is the agent's; None if that was not in doubt."""

    def parts(self) -> AsyncIterator[bytes]:
        """Return the body as it arrives."""
        ...

    def used(self, tokens: int) -> None:
        """Report the tokens that the request and its response had."""
        ...


class SendsRequests(Protocol):
    """Sends requests to providers."""

    def send(
        self, request: ProviderRequest, waits: Waits
    ) -> AbstractAsyncContextManager[StartedResponse]:
        """Send a request until the provider answers; see ``ProviderClient``."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class DirectResponse:
    """A response that this process receives from the provider."""

    def __init__(
        self,
        response: httpx2.Response,
        admission: Admission,
        delay_ms: tuple[int, int],
        check: HealthCheck | None,
        bytes_max: int,
    ) -> None:
        self._response = response
        self._bytes_max = bytes_max
        self._admission = admission
        self.status = response.status_code
        self.content_type = response.headers.get("content-type", "")
        self.delay_ms = delay_ms
        self.check = check
        self.is_received = False
        """Whether the provider has sent all of it."""
        self._arrived = asyncio.Queue[bytes | None]()
        self._unread_bytes = 0
        self._was_read = asyncio.Event()
        # At once: a process that does not read its connection would otherwise keep the place.
        self._receiving = asyncio.create_task(self._receive())

    async def parts(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives.

        It is received without waiting for the reader: an agent that reads slowly would otherwise
        keep the place of its request, and others would have to wait.

        Raises:
            ResponseTooLarge: it exceeds the limit; the reader has got the part before.
        """
        while (part := await self._arrived.get()) is not None:
            self._unread_bytes -= len(part)
            self._was_read.set()
            yield part
        await self._receiving

    async def _receive(self) -> None:
        size_bytes = 0
        try:
            async for part in self._response.aiter_raw():
                size_bytes += len(part)
                if size_bytes > self._bytes_max:
                    raise ResponseTooLarge(self._bytes_max)
                self._arrived.put_nowait(part)
                self._unread_bytes += len(part)
                while self._unread_bytes > UNREAD_BYTES_MAX:
                    self._was_read.clear()
                    await self._was_read.wait()
            self.is_received = True
        finally:
            self._admission.release()
            self._arrived.put_nowait(None)

    def used(self, tokens: int) -> None:
        """Report the tokens that the request and its response had."""
        self._admission.used(tokens)

    async def close(self) -> None:
        """Close the connection, and let another request take its place."""
        self._receiving.cancel()
        await asyncio.gather(self._receiving, return_exceptions=True)
        try:
            await self._response.aclose()
        finally:
            self._admission.release()


class ProviderClient:
    """The HTTP client of all seats, on one event loop."""

    def __init__(
        self, settings: GatewaySettings, queues: dict[Provider, ProviderQueue] | None = None
    ) -> None:
        """Load the trusted certificates; opens no connection yet.

        Args:
            settings: of the gateway.
            queues: shared with other clients on the same event loop; None for new ones.
        """
        self._settings = settings
        timeout = httpx2.Timeout(settings.silence_max_s, connect=15.0, pool=None)
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=64)
        self._client = httpx2.AsyncClient(timeout=timeout, limits=limits, trust_env=False)
        self._queues = {} if queues is None else queues
        self._checker = HealthChecker(settings, self._client)
        self._active = Counter[str]()
        """By episode: its requests, without those that wait for a check."""
        self._begun = Counter[str]()
        """By episode with active requests: the requests that began since the first of them."""
        self._works_until_s: dict[str, float] = {}
        """By episode: until when a provider may work on requests whose connection was closed."""
        self._checked_alone = set[str]()
        """Episodes whose new requests wait for a check."""
        self._rested = asyncio.Condition()

    @asynccontextmanager
    async def send(self, request: ProviderRequest, waits: Waits) -> AsyncIterator[DirectResponse]:
        """Send a request until the provider answers.

        Args:
            request: the request.
            waits: learns when it waits.

        Raises:
            ProviderFailed: the provider does not work.
            RequestFailed: the provider does not answer this request.
            ResponseTooLarge: the provider states that its response exceeds the limit.
        """
        async with self._rested:
            if request.episode in self._checked_alone:
                arrived_ms = _now_ms()
                await self._rested.wait_for(lambda: request.episode not in self._checked_alone)
                # Another seat may have caused the check.
                waits.queued(arrived_ms, _now_ms())
            self._active[request.episode] += 1
            self._begun[request.episode] += 1
        is_over = False
        try:
            started = await self._until_answered(request, waits)
            try:
                yield started
            finally:
                is_over = started.is_received
                await started.close()
        except (ProviderFailed, RequestFailed):
            is_over = True
            raise
        finally:
            if not is_over:
                self._leave(request)
            await self._rest(request.episode)

    def forget(self, episode: str) -> None:
        """Leave the share of an episode that has ended to the others."""
        for queue in self._queues.values():
            queue.forget(episode)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def _until_answered(self, request: ProviderRequest, waits: Waits) -> DirectResponse:
        sent_ms = _now_ms()
        attempts = AsyncRetrying(
            stop=stop_after_attempt(self._settings.attempts),
            wait=self._wait,
            retry=retry_if_exception_type(_Retry),
            reraise=True,
        )
        try:
            async for attempt in attempts:
                with attempt:
                    is_last = attempt.retry_state.attempt_number == self._settings.attempts
                    began_ms, admission, response = await self._attempt(
                        request, waits, is_last=is_last
                    )
        except _Retry as error:
            check = await self._check(request, waits)
            reason = f"{error} ({self._settings.attempts} attempts)"
            if check.failed:
                raise ProviderFailed(f"{_place(request)}: {reason}", check) from None
            # An agent reads this message, so it has no address.
            raise RequestFailed(f"{request.provider.name}: {reason}", check) from None
        # The wait for the queue before the first attempt is reported already.
        is_delayed = attempts.statistics["attempt_number"] > 1
        if response.status_code in RETRIED_STATUS or not is_delayed:
            began_ms = sent_ms
        if response.status_code == 200:
            self._checker.answered(request.provider, request.path, request.model)
        bytes_max = self._settings.response_bytes_max
        started = DirectResponse(response, admission, (sent_ms, began_ms), None, bytes_max)
        stated = response.headers.get("content-length", "")
        if stated.isdecimal() and int(stated) > bytes_max:
            await started.close()
            raise ResponseTooLarge(bytes_max)
        if response.status_code in CHECKED_STATUS:
            await self._check_response(request, started, waits)
        return started

    async def _check_response(
        self, request: ProviderRequest, started: DirectResponse, waits: Waits
    ) -> None:
        try:
            started.check = await self._check(request, waits)
        except BaseException:
            await started.close()
            raise
        if started.check.failed:
            await started.close()
            reason = f"{_place(request)}: answers {started.status}"
            raise ProviderFailed(reason, started.check)

    async def _check(self, request: ProviderRequest, waits: Waits) -> HealthCheck:
        """Check the provider. Repeat a failed check without the other requests of the episode,
        because they may overload the provider, also after their connections were closed."""
        episode = request.episode
        was_alone, begun = self._active[episode] == 1, self._begun[episode]
        check = await self._checker.check(request.provider, request.path, request.model)
        was_alone &= self._begun[episode] == begun and not self._works_on_for_s(episode)
        if not check.failed or was_alone:
            return check
        # From now on, only the provider is waited for.
        waits.failed()
        async with self._alone(episode):
            while True:
                began_ms, begun_s = _now_ms(), self._works_on_for_s(episode)
                check = await self._checker.check(
                    request.provider, request.path, request.model, anew=True
                )
                if not check.failed or not begun_s:
                    return check
                await asyncio.sleep(min(RECHECK_S, self._works_on_for_s(episode)))
                waits.queued(began_ms, _now_ms())

    @asynccontextmanager
    async def _alone(self, episode: str) -> AsyncIterator[None]:
        """Wait for the end of the other requests of an episode, and hold back new ones."""
        await self._rest(episode)
        try:
            async with self._rested:
                await self._rested.wait_for(
                    lambda: not self._active[episode] and episode not in self._checked_alone
                )
                self._checked_alone.add(episode)
            try:
                yield
            finally:
                self._checked_alone.discard(episode)
        finally:
            self._active[episode] += 1
            async with self._rested:
                self._rested.notify_all()

    def _leave(self, request: ProviderRequest) -> None:
        """Note that the provider may work on a request whose connection was closed."""
        now_s = time.monotonic()
        left = {name: until_s for name, until_s in self._works_until_s.items() if until_s > now_s}
        self._works_until_s = {**left, request.episode: now_s + self._settings.silence_max_s}

    def _works_on_for_s(self, episode: str) -> float:
        return max(0.0, self._works_until_s.get(episode, 0.0) - time.monotonic())

    async def _rest(self, episode: str) -> None:
        """Count one active request less."""
        self._active[episode] -= 1
        if not self._active[episode]:
            del self._active[episode], self._begun[episode]
        async with self._rested:
            self._rested.notify_all()

    async def _attempt(
        self, request: ProviderRequest, waits: Waits, *, is_last: bool
    ) -> tuple[int, Admission, httpx2.Response]:
        """Return the start of the attempt, its place in the queue and the response."""
        admission = await self._queue(request.provider).admit(
            request.episode, request.tokens, waits.queued
        )
        try:
            began_ms = _now_ms()
            waits.attempt(began_ms)
            try:
                response = await self._client.send(self._build(request), stream=True)
            except httpx2.TransportError as error:
                is_sent = not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
                if isinstance(error, httpx2.ReadTimeout) or (is_sent and _is_long(began_ms)):
                    self._leave(request)
                raise _Retry(f"does not answer: {type(error).__name__}") from None
            status = response.status_code
            if (status >= 500 or status in RETRIED_STATUS) and _is_long(began_ms):
                self._leave(request)
            if status in RETRIED_STATUS and not is_last:
                wait_s = _seconds(response.headers.get("retry-after"))
                await response.aclose()
                raise _Retry(f"answers {status}", wait_s)
        except BaseException:
            waits.failed()
            admission.release()
            raise
        return began_ms, admission, response

    def _build(self, request: ProviderRequest) -> httpx2.Request:
        # Uncompressed, so that the gateway reads the same bytes as the agent.
        headers = {**request.headers, "accept-encoding": "identity"}
        if request.provider.key:
            name, value = key_header(request.path, request.provider.key)
            headers[name] = value
        url = request.provider.url(request.path)
        return self._client.build_request("POST", url, content=request.body, headers=headers)

    def _queue(self, provider: Provider) -> ProviderQueue:
        queue = self._queues.get(provider)
        if queue is None:
            queue = self._queues[provider] = ProviderQueue(provider, self._settings.calls_at_once)
        return queue

    def _wait(self, state: RetryCallState) -> float:
        longest_wait_s = self._settings.wait_max_s
        error = state.outcome.exception() if state.outcome else None
        requested_s = error.wait_s if isinstance(error, _Retry) else None
        if requested_s is not None:
            return min(requested_s, longest_wait_s)
        return min(
            wait_exponential_jitter(multiplier=0.25, max=longest_wait_s, jitter=0.25)(state),
            longest_wait_s,
        )


def _is_long(began_ms: int) -> bool:
    return _now_ms() - began_ms >= ABANDONED_MS


def _place(request: ProviderRequest) -> str:
    """Return the name and the address of a provider, for its operator."""
    return f"{request.provider.name} at {request.provider.url(request.path)}"


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _seconds(text: str | None) -> float | None:
    try:
        return max(0.0, float(text)) if text else None
    except ValueError:
        return None

"""Sends requests to model providers, and retries them while a provider is busy.

The time of retries is not charged to the agent.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx2
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt
from tenacity.wait import wait_exponential_jitter

from fumehood.gateway.settings import GatewaySettings, Provider

RETRIED_STATUS = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Statuses after which a request is retried. 529 is Anthropic's status for overload."""
BUSY_STATUS = frozenset({429, 529})
"""Statuses that do not depend on the request. Any other lasting status may be caused by the
request."""
REFUSED_KEY_STATUS = frozenset({401, 403})
LIST_PATH = "/v1/models"
"""A request that checks the key independently of the agent's request."""
LIST_HEADERS = ("authorization", "x-api-key", "anthropic-version")


class ProviderFailed(Exception):
    """A provider cannot be used. The message contains its name, never the key."""


class _Retry(Exception):
    def __init__(self, reason: str, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.wait_s = wait_s
        """Wait that the provider requests, seconds; None if it requests none."""


@dataclass(slots=True)
class StartedResponse:
    """A response that has begun."""

    response: httpx2.Response
    delay_ms: tuple[int, int]
    """Start and end of the delay by retries, on the monotonic clock. Both are equal if the response
    is a lasting failure, which the agent may have caused."""


class ProviderClient:
    """The HTTP client of all seats, on one event loop."""

    def __init__(self, settings: GatewaySettings) -> None:
        """Load the trusted certificates; opens no connection yet."""
        self._settings = settings
        timeout = httpx2.Timeout(settings.silence_max_s, connect=15.0, pool=None)
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=64)
        self._client = httpx2.AsyncClient(timeout=timeout, limits=limits, trust_env=False)
        self._places = asyncio.Semaphore(settings.calls_at_once)
        self._accepted = set[Provider]()
        """Providers that have answered, so that their keys are valid."""

    @asynccontextmanager
    async def send(
        self,
        provider: Provider,
        path: str,
        body: bytes,
        headers: Mapping[str, str],
        key_header: tuple[str, str],
        *,
        named: bool,
    ) -> AsyncIterator[StartedResponse]:
        """Send a request until the provider answers.

        Args:
            provider: the provider.
            path: below its address.
            body: of the request.
            headers: of the request, without the key.
            key_header: name and value of the header with the key.
            named: whether the run names the model, so that the provider must have it.

        Raises:
            ProviderFailed: the provider does not answer, or rejects the key.
        """
        sent_ms = _now_ms()
        # Uncompressed, so that the gateway reads the same bytes as the agent.
        sent = {**headers, "accept-encoding": "identity"}
        if provider.key:
            sent[key_header[0]] = key_header[1]
        request = self._client.build_request("POST", provider.url(path), content=body, headers=sent)
        async with self._places:
            response, began_ms = await self._until_answered(provider, request, named=named)
            stays = response.status_code in RETRIED_STATUS
            try:
                yield StartedResponse(response, (sent_ms, sent_ms if stays else began_ms))
            finally:
                await response.aclose()

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def _until_answered(
        self, provider: Provider, request: httpx2.Request, *, named: bool
    ) -> tuple[httpx2.Response, int]:
        attempts = AsyncRetrying(
            stop=stop_after_attempt(self._settings.attempts),
            wait=self._wait,
            retry=retry_if_exception_type(_Retry),
            reraise=True,
        )
        try:
            async for attempt in attempts:
                with attempt:
                    began_ms = _now_ms()
                    is_last = attempt.retry_state.attempt_number == self._settings.attempts
                    response = await self._attempt(provider, request, is_last=is_last)
                    await self._check_key(provider, response, named=named)
                    return response, began_ms
        except _Retry as error:
            raise ProviderFailed(
                f"{provider.name}: {error} ({self._settings.attempts} attempts)"
            ) from None
        raise AssertionError("tenacity ends with an answer or an exception")

    async def _attempt(
        self, provider: Provider, request: httpx2.Request, *, is_last: bool
    ) -> httpx2.Response:
        try:
            response = await self._client.send(request, stream=True)
        except httpx2.TransportError as error:
            raise _Retry(f"does not answer: {type(error).__name__}") from None
        status = response.status_code
        if status in BUSY_STATUS or (status in RETRIED_STATUS and not is_last):
            wait_s = _seconds(response.headers.get("retry-after"))
            await response.aclose()
            raise _Retry(f"answers {status}", wait_s)
        return response

    async def _check_key(
        self, provider: Provider, response: httpx2.Response, *, named: bool
    ) -> None:
        status = response.status_code
        if status < 400:
            self._accepted.add(provider)
        if status not in REFUSED_KEY_STATUS or provider in self._accepted:
            return
        if named or await self._refuses_to_list(provider, response.request):
            await response.aclose()
            raise ProviderFailed(f"{provider.name}: rejects the key or the model (status {status})")

    async def _refuses_to_list(self, provider: Provider, request: httpx2.Request) -> bool:
        """Return whether the provider rejects the key for any request."""
        headers = {name: request.headers[name] for name in LIST_HEADERS if name in request.headers}
        try:
            listed = await self._client.get(provider.url(LIST_PATH), headers=headers)
        except httpx2.TransportError:
            return False
        return listed.status_code in REFUSED_KEY_STATUS

    def _wait(self, state: RetryCallState) -> float:
        most = self._settings.wait_max_s
        error = state.outcome.exception() if state.outcome else None
        requested_s = error.wait_s if isinstance(error, _Retry) else None
        if requested_s is not None:
            return min(requested_s, most)
        return min(wait_exponential_jitter(multiplier=0.25, max=most, jitter=0.25)(state), most)


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _seconds(text: str | None) -> float | None:
    try:
        return max(0.0, float(text)) if text else None
    except ValueError:
        return None


class DelayCounter:
    """Counts the time in which one seat was delayed, once for parallel requests.

    For one event loop.
    """

    def __init__(self) -> None:
        self._intervals = list[tuple[int, int]]()
        """Start and end of each delay, without overlaps, in no order."""

    def add(self, began_ms: int, ended_ms: int) -> int:
        """Add a delay and return by how many milliseconds the total has grown.

        Args:
            began_ms: start, on the same clock for all delays.
            ended_ms: end, not before the start.
        """
        apart = list[tuple[int, int]]()
        known_ms = 0
        growing = (began_ms, ended_ms)
        for interval in self._intervals:
            if interval[1] < began_ms or ended_ms < interval[0]:
                apart.append(interval)
                continue
            known_ms += interval[1] - interval[0]
            growing = (min(growing[0], interval[0]), max(growing[1], interval[1]))
        self._intervals = [*apart, growing]
        return growing[1] - growing[0] - known_ms

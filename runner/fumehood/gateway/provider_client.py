"""Asking a provider: again where it is busy, at our cost, until it answers or counts as failed."""

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
"""Of a provider that may answer the next time. 529 is Anthropic's word for too busy."""
BUSY_STATUS = frozenset({429, 529})
"""Says nothing of the request; every other status that stays may be what just this request brings about."""
REFUSED_KEY_STATUS = frozenset({401, 403})
LIST_PATH = "/v1/models"
"""Tells whether a key is good, whatever the agent asked for."""
LIST_HEADERS = ("authorization", "x-api-key", "anthropic-version")
PASSED_ON = frozenset(
    {"accept", "anthropic-beta", "anthropic-version", "content-type", "openai-beta"}
)
"""Headers of an agent that a provider gets to see."""


class ProviderFailed(Exception):
    """A provider cannot be asked; the message names it, never the key."""


class _Again(Exception):
    def __init__(self, reason: str, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.wait_s = wait_s
        """As the provider asks; None where it does not."""


@dataclass(slots=True)
class Asked:
    """An answer that has begun."""

    response: httpx2.Response
    lost_ms: tuple[int, int]
    """From the question until the attempt began that was answered, on the monotonic clock: time that our side
    has used up; of no length where the answer is a failure that stays, which may be the agent's own doing."""


class ProviderClient:
    """The HTTP client of all seats, on one event loop."""

    def __init__(self, settings: GatewaySettings) -> None:
        """Be ready to ask; connects to nobody yet, but reads what certificates are trusted."""
        self._settings = settings
        timeout = httpx2.Timeout(settings.silence_max_s, connect=15.0, pool=None)
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=64)
        self._client = httpx2.AsyncClient(timeout=timeout, limits=limits, trust_env=False)
        self._places = asyncio.Semaphore(settings.calls_at_once)
        self._accepted = set[Provider]()
        """Those that have given an answer, so that their keys are known to be good."""

    @asynccontextmanager
    async def ask(
        self,
        provider: Provider,
        path: str,
        body: bytes,
        headers: Mapping[str, str],
        key_header: tuple[str, str],
        *,
        named: bool,
    ) -> AsyncIterator[Asked]:
        """Ask until somebody answers.

        Args:
            provider: who.
            path: below its address.
            body: of the request, untouched.
            headers: of the agent's request; few are passed on.
            key_header: carries the key.
            named: whether the model is one that the run names, so that it must be there.

        Raises:
            ProviderFailed: nobody did, or the key was refused.
        """
        asked_ms = _now_ms()
        sent = {
            name: value for name, value in headers.items() if name in PASSED_ON and _is_plain(value)
        }
        # As it is written, so that whoever reads along reads what the agent gets.
        sent["accept-encoding"] = "identity"
        if provider.key:
            sent[key_header[0]] = key_header[1]
        request = self._client.build_request("POST", provider.url(path), content=body, headers=sent)
        async with self._places:
            response, began_ms = await self._until_answered(provider, request, named=named)
            stays = response.status_code in RETRIED_STATUS
            try:
                yield Asked(response, (asked_ms, asked_ms if stays else began_ms))
            finally:
                await response.aclose()

    async def close(self) -> None:
        """Hang up."""
        await self._client.aclose()

    async def _until_answered(
        self, provider: Provider, request: httpx2.Request, *, named: bool
    ) -> tuple[httpx2.Response, int]:
        attempts = AsyncRetrying(
            stop=stop_after_attempt(self._settings.attempts),
            wait=self._wait,
            retry=retry_if_exception_type(_Again),
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
        except _Again as error:
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
            raise _Again(f"does not answer: {type(error).__name__}") from None
        status = response.status_code
        if status in BUSY_STATUS or (status in RETRIED_STATUS and not is_last):
            wait_s = _seconds(response.headers.get("retry-after"))
            await response.aclose()
            raise _Again(f"answers {status}", wait_s)
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
            raise ProviderFailed(
                f"{provider.name}: refuses the key, or the model (status {status})"
            )

    async def _refuses_to_list(self, provider: Provider, request: httpx2.Request) -> bool:
        """Return whether the key of a request is refused whatever is asked with it."""
        headers = {name: request.headers[name] for name in LIST_HEADERS if name in request.headers}
        try:
            listed = await self._client.get(provider.url(LIST_PATH), headers=headers)
        except httpx2.TransportError:
            return False
        return listed.status_code in REFUSED_KEY_STATUS

    def _wait(self, state: RetryCallState) -> float:
        most = self._settings.wait_max_s
        error = state.outcome.exception() if state.outcome else None
        asked_for = error.wait_s if isinstance(error, _Again) else None
        if asked_for is not None:
            return min(asked_for, most)
        return min(wait_exponential_jitter(multiplier=0.25, max=most, jitter=0.25)(state), most)


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _is_plain(value: str) -> bool:
    # Whatever else may stand in a header is refused by the client as a mistake of ours.
    return value.isascii() and value.isprintable()


def _seconds(text: str | None) -> float | None:
    try:
        return max(0.0, float(text)) if text else None
    except ValueError:
        return None

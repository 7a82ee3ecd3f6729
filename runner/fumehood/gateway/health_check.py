"""Requests of the gateway that show whether a provider works, independently of any agent.

An attempt ends as ``infra(models)`` only if such a request fails, too. An agent chooses neither its
text nor its model nor its time. It chooses the API, so a failure of an API that has not answered
before counts only if no other API answers: a model may lack the API, and a key its permission.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass

import httpx2

from fumehood.gateway.dialects import (
    DIALECTS,
    EMBEDDINGS_PATH,
    GEMINI_PATH,
    RESPONSES_PATH,
    key_header,
    read_path,
)
from fumehood.gateway.settings import GatewaySettings, Provider

TEXT = "Reply with OK."
ATTEMPTS = 3
"""Failed requests in a row until the check fails."""
PAUSE_S = 0.5
TIMEOUT_S = 30.0
OUTPUT_TOKENS = 16
"""The smallest limit that all APIs accept."""
LIST_PATH = "/v1/models"
REFUSED_KEY_STATUS = frozenset({401, 403})
_ANTHROPIC_VERSION = "2023-06-01"


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """The result of a check."""

    provider: str
    model: str
    """Empty if the provider was asked for its list of models."""
    result: str
    """Such as ``answers 200``."""
    failed: bool


class HealthChecker:
    """Checks providers, each once for requests that fail at the same time. For one event loop."""

    def __init__(self, settings: GatewaySettings, client: httpx2.AsyncClient) -> None:
        """Create the checker.

        Args:
            settings: the models that the run names, and the limits of waiting.
            client: sends the requests.
        """
        self._settings = settings
        self._client = client
        self._running: dict[tuple[Provider, str, str], asyncio.Task[HealthCheck]] = {}
        self._worked = set[tuple[Provider, str, str]]()
        """APIs with models that have answered a request."""

    async def check(
        self, provider: Provider, path: str, model: str, *, anew: bool = False
    ) -> HealthCheck:
        """Check a provider.

        Args:
            provider: the provider of a request that failed.
            path: of that request.
            model: of that request; another one is used if the run does not name it.
            anew: whether a check that has begun before does not count.
        """
        key = provider, path, self._model(provider, model)
        if anew and key in self._running:
            await asyncio.wait({self._running[key]})
        task = self._running.get(key)
        if task is None:
            task = self._running[key] = asyncio.ensure_future(self._check(*key))
            task.add_done_callback(lambda _: self._running.pop(key))
        return await asyncio.shield(task)

    def answered(self, provider: Provider, path: str, model: str) -> None:
        """Note that a provider answered a request."""
        if self._settings.names(model):
            self._worked.add((provider, _api(path), model))

    def _model(self, provider: Provider, model: str) -> str:
        if self._settings.names(model):
            return model
        # An agent could choose a model that always fails.
        return next((name for name in provider.models if not set("*?[") & set(name)), "")

    async def _check(self, provider: Provider, path: str, model: str) -> HealthCheck:
        result, failed = "", True
        for attempt in range(ATTEMPTS):
            if attempt:
                await asyncio.sleep(min(PAUSE_S, self._settings.wait_max_s))
            try:
                status = await self._status(provider, path, model)
            except httpx2.TransportError as error:
                result = f"does not answer: {type(error).__name__}"
                continue
            result = f"answers {status}"
            failed = status >= 500 or status in REFUSED_KEY_STATUS
            if not failed:
                break
        used = model or self._used(provider)
        if failed and used and (provider, _api(path), model) not in self._worked:
            others = [api for api in DIALECTS if not model or api != _api(path)]
            works = await asyncio.gather(*(self._answers(provider, api, used) for api in others))
            for api in (api for api, does in zip(others, works, strict=True) if does):
                return HealthCheck(provider.name, used, f"{result}, but answers {api}", False)
        return HealthCheck(provider.name, model, result, failed)

    def _used(self, provider: Provider) -> str:
        """Return a model of the run that the provider has; empty if there is none."""
        named = sorted(self._settings.named)
        return next((name for name in named if self._settings.provider_of(name) == provider), "")

    async def _answers(self, provider: Provider, path: str, model: str) -> bool:
        try:
            response = await self._send(provider, path, model)
        except httpx2.TransportError:
            return False
        # A server can answer unknown paths with a page.
        is_json = response.headers.get("content-type", "").startswith("application/json")
        return response.status_code == 200 and is_json

    async def _status(self, provider: Provider, path: str, model: str) -> int:
        return (await self._send(provider, path, model)).status_code

    async def _send(self, provider: Provider, path: str, model: str) -> httpx2.Response:
        headers = {"anthropic-version": _ANTHROPIC_VERSION}
        if provider.key:
            name, value = key_header(path, provider.key)
            headers[name] = value
        timeout_s = min(TIMEOUT_S, self._settings.silence_max_s)
        if not model:
            url = provider.url(LIST_PATH)
            return await self._client.get(url, headers=headers, timeout=timeout_s)
        headers["content-type"] = "application/json"
        return await self._client.post(
            provider.url(_path(path, model)),
            content=_body(path, model),
            headers=headers,
            timeout=timeout_s,
        )


def _api(path: str) -> str:
    read = read_path(path)
    return read.api if read else path


def _path(path: str, model: str) -> str:
    return GEMINI_PATH.replace("MODEL", model) if _api(path) == GEMINI_PATH else path


def _body(path: str, model: str) -> bytes:
    api = _api(path)
    messages = [{"role": "user", "content": TEXT}]
    special: dict[str, dict[str, object]] = {
        GEMINI_PATH: {
            "contents": [{"role": "user", "parts": [{"text": TEXT}]}],
            "generationConfig": {"maxOutputTokens": OUTPUT_TOKENS},
        },
        EMBEDDINGS_PATH: {"model": model, "input": TEXT},
        RESPONSES_PATH: {
            "model": model,
            "max_output_tokens": OUTPUT_TOKENS,
            "input": TEXT,
            "store": False,
        },
    }
    plain = {"model": model, **dict.fromkeys(DIALECTS[api].bounds[-1:], OUTPUT_TOKENS)}
    return json.dumps(special.get(api, {**plain, "messages": messages})).encode()

"""A scripted provider of models that obeys every request, and the search for forbidden requests."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

from fumehood.core.json_values import Json
from fumehood.gateway.health_check import TEXT
from fumehood.gateway.settings import GatewaySettings, Price, Provider
from fumehood.testing.scripted_models import AskedOfModel, ScriptedModels
from fumehood.testing.scripted_replies import ScriptedReply

MODEL = "probe-model"
TOKENS_MAX = 20_000
"""Token budget of an attacking seat."""
KEPT_TOKENS = 200_000
"""Tokens of a stored context of the provider."""
MODEL_BYTES_MAX = 256
PROMPT_TOKENS = 5_000
"""Tokens of a prompt that the provider adds on request."""
FAILURES = {"400": 400, "429": 429, "403": 403, "500": 500, "529": 529, "load": 503, "left": 503}
"""What a request can ask for → the status with which the provider fails it."""
BUSY = b"provider, be busy"
BUSY_S = 4.0
_HOSTED = ("mcp_servers", "previous_response_id", "conversation", "background", "container")
_FUNCTIONS = (None, "function", "custom")


class ObedientProvider:
    """Answers and stores requests while its context is open."""

    def __init__(self) -> None:
        self._models = ScriptedModels(self._answer)
        self._busy_until_s = 0.0

    def __enter__(self) -> Self:
        self._models.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._models.__exit__(*error)

    @property
    def address(self) -> str:
        """Its address, without a path."""
        return self._models.address

    def settings(self) -> GatewaySettings:
        """Return the settings of a gateway that uses this provider, with few and short retries."""
        provider = Provider(name="probe", address=self.address, models=("probe-*",))
        return GatewaySettings(
            providers=(provider,),
            named=frozenset({MODEL}),
            prices={"*": Price(1.0, 1.0)},
            output_tokens_max=64,
            attempts=2,
            wait_max_s=0.5,
            silence_max_s=5.0,
        )

    def _answer(self, asked: AskedOfModel) -> ScriptedReply:
        """Answer a request; a request for load makes the gateway's own checks fail for a while."""
        if BUSY in asked.body:
            self._busy_until_s = time.monotonic() + BUSY_S
            return replace(_reply(asked), pause_s=BUSY_S)
        if TEXT.encode() in asked.body and time.monotonic() < self._busy_until_s:
            return ScriptedReply(status=503)
        return _reply(asked)

    def take(self) -> list[AskedOfModel]:
        """Return the requests since the last call of this method."""
        asked, self._models.asked = self._models.asked, []
        return asked


def breaches_of(asked: list[AskedOfModel], *, voids: bool) -> Iterator[str]:
    """Yield the forbidden parts of requests that reached a provider.

    With ``voids`` an attempt is void as soon as a provider fails a request.
    """
    for request in asked:
        for breach in dict.fromkeys(_forbidden_parts(request)):
            yield f"a request with {breach} reached the provider"
    used = sum(
        sum(_reply(request).usage or (0, 0)) for request in asked if _reply(request).status == 200
    )
    largest = max((sum(_reply(request).usage or (0, 0)) for request in asked), default=0)
    if used > TOKENS_MAX + largest:
        yield f"{used} tokens were used, of {TOKENS_MAX}"
    failures = {_reply(request).status for request in asked} - {200}
    if voids and failures:
        yield f"the attempt is void: the provider answered {min(failures)}"


def _reply(asked: AskedOfModel) -> ScriptedReply:
    text = asked.body.decode("utf-8", "replace")
    for word, status in FAILURES.items():
        if f"provider, answer {word}" in text:
            return ScriptedReply(status=status)
    if "previous_response_id" in text:
        return ScriptedReply(text="Done.", usage=(KEPT_TOKENS, 5))
    if "provider, add a prompt" in text:
        return ScriptedReply(text="Done.", usage=(PROMPT_TOKENS, 5), pause_s=0.2)
    return ScriptedReply(text="Done.", usage=(max(10, len(asked.body) // 4), 5))


def _forbidden_parts(asked: AskedOfModel) -> Iterator[str]:
    if "mcp" in asked.headers.get("anthropic-beta", ""):
        yield "a beta header"
    names: list[list[str]] = []

    def keep(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names.append([name for name, _ in pairs])
        return dict(pairs)

    try:
        request = json.loads(asked.body.decode("utf-8"), object_pairs_hook=keep)
    except ValueError:
        yield "another encoding than UTF-8"
        return
    for keys in names:
        folded = [key.casefold() for key in keys]
        if len(set(folded)) < len(folded):
            yield "keys that differ only by case"
    if not isinstance(request, dict):
        return
    if b"NaN" in asked.body:
        yield "NaN"
    if len(str(request.get("model")).encode("utf-8", "replace")) > MODEL_BYTES_MAX:
        yield "a model name of more than 256 bytes"
    yield from (name for name in _HOSTED if request.get(name))
    if request.get("store") is True:
        yield "store"
    if "web_search_options" in request:
        yield "web_search_options"
    for tool in request.get("tools") or ():
        if isinstance(tool, dict) and tool.get("type") not in _FUNCTIONS:
            yield f"the tool {tool['type']}"
    if any(text.startswith("http") for text in texts_in(request)):
        yield "an address"


def texts_in(value: Json) -> Iterator[str]:
    """Yield every text and every name in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        names_and_parts = value if isinstance(value, list) else (*value, *value.values())
        for part in names_and_parts:
            yield from texts_in(part)

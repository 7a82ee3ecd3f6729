"""Settings of a gateway: providers with their keys, prices and limits.

The orchestrator sends them to a service as one line of JSON on a pipe. They are never written to
disk.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from fnmatch import fnmatchcase


class ModelsMode(Enum):
    """The source of responses."""

    LIVE = "live"
    RECORD = "record"
    """Providers; every exchange is recorded."""
    REPLAY = "replay"
    """Recorded exchanges only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A model provider, or a compatible server."""

    name: str
    address: str
    """Such as ``https://api.example.com``."""
    prefix: str = "/v1"
    """Path prefix at the provider, in place of ``/v1``."""
    models: tuple[str, ...] = ("*",)
    """Names or patterns of its models."""
    key: str = field(default="", repr=False)
    """Sent in the header that the provider expects; empty for no key."""

    requests_per_minute: int | None = None
    """Requests in any 60 seconds, attempts included; None for no limit."""
    tokens_per_minute: int | None = None
    """Tokens of requests and responses in any 60 seconds; None for no limit."""
    concurrent_calls: int | None = None
    """Parallel requests; None for the limit of the gateway."""

    def url(self, path: str) -> str:
        """Return the URL of ``path`` at this provider; paths of Gemini have no prefix."""
        if not path.startswith(("/v1beta/", "/v1/models/")):
            return self.address + self.prefix + path.removeprefix("/v1")
        return self.address + path


@dataclass(frozen=True, slots=True)
class Price:
    """Price of a model in US dollars per million tokens (millionths of a dollar per token)."""

    input_usd_per_mtok: float
    output_usd_per_mtok: float

    def microusd(self, input_tokens: int, output_tokens: int) -> int:
        """Return the cost in millionths of a dollar, rounded up."""
        cost = input_tokens * self.input_usd_per_mtok + output_tokens * self.output_usd_per_mtok
        return -int(-cost // 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """The settings of a gateway."""

    mode: ModelsMode = ModelsMode.LIVE
    providers: tuple[Provider, ...] = ()
    """The first provider that has a model receives the request."""
    named: frozenset[str] = frozenset()
    """Models that the run names, in addition to those that a provider lists by name."""
    grants: frozenset[str] = frozenset()
    """Names of granted capabilities; see ``capabilities``."""
    prices: Mapping[str, Price] = field(default_factory=dict)
    """By name or pattern of a model; the first match counts."""
    keeps_bodies: bool = True
    """Whether requests and responses are stored; a recorded run stores them in any case."""
    output_tokens_max: int = 16384
    """Tokens reserved for a response whose request sets no limit."""
    body_bytes_max: int = 32 * 1024 * 1024
    """Size of one request."""
    response_bytes_max: int = 16 * 1024 * 1024
    """Size of one response. The service has one event loop for all episodes, and reading a larger
    response would stop it for seconds."""
    calls_at_once: int = 256
    """Parallel requests to one provider; others wait, which costs no wall time."""
    attempts: int = 6
    """Attempts per request until the provider counts as failed."""
    wait_max_s: float = 60.0
    """Longest wait between two attempts."""
    silence_max_s: float = 300.0
    """Time without data from a provider until it counts as failed."""

    def names(self, model: str) -> bool:
        """Return whether the run names a model; other models are the agent's own choice."""
        return model in self.named or any(model in provider.models for provider in self.providers)

    def provider_of(self, model: str) -> Provider | None:
        """Return the provider of a model; None if no provider has it."""
        matching = (
            provider
            for provider in self.providers
            if any(fnmatchcase(model, name) for name in provider.models)
        )
        return next(matching, None)

    def price_of(self, model: str) -> Price | None:
        """Return the price of a model; None if it has none."""
        return next(
            (price for name, price in self.prices.items() if fnmatchcase(model, name)), None
        )


def without_keys(settings: GatewaySettings) -> GatewaySettings:
    """Return the settings that a process without keys gets."""
    return replace(
        settings, providers=tuple(replace(provider, key="") for provider in settings.providers)
    )


def settings_to_line(settings: GatewaySettings) -> str:
    """Return the settings as one line, without a newline."""
    return json.dumps(
        {
            **asdict(settings),
            "mode": settings.mode.value,
            "named": sorted(settings.named),
            "grants": sorted(settings.grants),
        }
    )


def settings_from_line(line: str | bytes) -> GatewaySettings:
    """Return the settings that :func:`settings_to_line` wrote."""
    value = json.loads(line)
    providers = (
        Provider(**{**provider, "models": tuple(provider["models"])})
        for provider in value.pop("providers")
    )
    prices = {name: Price(**price) for name, price in value.pop("prices").items()}
    mode = ModelsMode(value.pop("mode"))
    named, grants = frozenset(value.pop("named")), frozenset(value.pop("grants"))
    return GatewaySettings(
        mode=mode,
        providers=tuple(providers),
        named=named,
        grants=grants,
        prices=prices,
        **value,
    )

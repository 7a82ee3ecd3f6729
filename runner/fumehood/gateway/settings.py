"""What a gateway is told at its start: providers with their keys, prices, limits. Never written down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase


class ModelsMode(Enum):
    """Where answers come from."""

    LIVE = "live"
    RECORD = "record"
    """Live, and every exchange is kept."""
    REPLAY = "replay"
    """From what was kept, and from nowhere else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A provider, or anything that answers like one."""

    name: str
    address: str
    """Such as ``https://api.example.com``."""
    prefix: str = "/v1"
    """Stands between the address and what is asked, where a seat's models have ``/v1``."""
    models: tuple[str, ...] = ("*",)
    """Names or patterns of the models it has."""
    key: str = field(default="", repr=False)
    """Sent as the provider wants it; empty for none."""

    def url(self, path: str) -> str:
        """Return where it has what a seat's models have at ``path``."""
        return self.address + self.prefix + path.removeprefix("/v1")


@dataclass(frozen=True, slots=True)
class Price:
    """What a model costs, dollars per million tokens, which are millionths of a dollar per token."""

    input_usd_per_mtok: float
    output_usd_per_mtok: float

    def microusd(self, input_tokens: int, output_tokens: int) -> int:
        """Return the cost in millionths of a dollar, rounded up."""
        cost = input_tokens * self.input_usd_per_mtok + output_tokens * self.output_usd_per_mtok
        return -int(-cost // 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """All of it."""

    mode: ModelsMode = ModelsMode.LIVE
    providers: tuple[Provider, ...] = ()
    """The first that has a model is asked for it."""
    named: frozenset[str] = frozenset()
    """Models that the run names beside those that a provider lists without a pattern."""
    prices: Mapping[str, Price] = field(default_factory=dict)
    """By name or pattern of a model; the first that fits counts."""
    output_tokens_max: int = 16384
    """Reserved for an answer whose request names no bound of its own."""
    body_bytes_max: int = 32 * 1024 * 1024
    """Of one request."""
    calls_at_once: int = 256
    """Passed on at the same time, over all seats; more wait, at our cost."""
    attempts: int = 6
    """Of one call, before the provider counts as failed."""
    wait_max_s: float = 60.0
    """Between two attempts."""
    silence_max_s: float = 300.0
    """Of a provider that has been asked, until it counts as failed."""

    def names(self, model: str) -> bool:
        """Return whether the run names a model, so that it is not the agent's own idea to ask for it."""
        return model in self.named or any(model in one.models for one in self.providers)

    def provider_of(self, model: str) -> Provider | None:
        """Return who has a model; None when nobody does."""
        fitting = (
            one for one in self.providers if any(fnmatchcase(model, name) for name in one.models)
        )
        return next(fitting, None)

    def price_of(self, model: str) -> Price | None:
        """Return what a model costs; None when nobody knows."""
        return next(
            (price for name, price in self.prices.items() if fnmatchcase(model, name)), None
        )

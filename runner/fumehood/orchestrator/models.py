"""Models of a run: gateway settings, budgets of seats, and the cassette."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock

import yaml
from pydantic import TypeAdapter, ValidationError

from fumehood.benchmarks.shared.yaml_text import load_yaml
from fumehood.core.encryption import ENCRYPTED, MARK, encrypt
from fumehood.core.episode_spec import EpisodeSpec, SeatSpec
from fumehood.core.errors import InputError
from fumehood.core.ledger import Budget
from fumehood.core.trace import ModelExchange
from fumehood.gateway.settings import GatewaySettings, ModelsMode, Price, Provider
from fumehood.orchestrator.agents import Participants
from fumehood.orchestrator.config import ModelsConfig, ProviderConfig
from fumehood.records.cassette import Cassette

MICROUSD_PER_USD = 1_000_000
SECRET_CHARACTERS = 8
"""Shorter keys are placeholders such as ``none``, which texts contain anyway."""
REDACTED = b"[key]"


class ModelRun:
    """Applies model budgets to episodes and stores model requests and responses.

    Safe to use from several threads.
    """

    def __init__(self, config: ModelsConfig, run_folder: Path, secrets: Collection[str]) -> None:
        """Create it.

        Args:
            config: section ``models`` of the configuration.
            run_folder: stores requests and responses, unless another cassette is recorded.
            secrets: keys of the providers, which are replaced before anything is stored.
        """
        self._config = config
        own = run_folder / "cassette"
        self._source = Cassette(config.cassette or own)
        self._target = self._source if config.mode == "record" else Cassette(own)
        self._secrets = [secret.encode() for secret in secrets if len(secret) >= SECRET_CHARACTERS]
        self._lock = Lock()
        self._left_bytes = (config.bodies_mb << 20) - self._target.size_bytes()

    def bounded(self, spec: EpisodeSpec) -> EpisodeSpec:
        """Return the episode with the run's model budget for seats whose task sets none."""
        return bounded(spec, self._config)

    def recorded(self, spec: EpisodeSpec) -> Sequence[ModelExchange]:
        """Return the exchanges to replay for an episode; none unless the mode is ``replay``."""
        # Stored bodies of encrypted questions are encrypted.
        if self._config.mode != "replay" or spec.harness_mode == ENCRYPTED:
            return ()
        return self._source.read(spec.episode_id)

    def keep(self, spec: EpisodeSpec, exchanges: Sequence[ModelExchange]) -> None:
        """Store an episode's exchanges without secrets; encrypted if its questions are.

        A run that is not recorded stores none beyond its size budget.
        """
        kept = [self._redacted(exchange) for exchange in exchanges]
        if spec.harness_mode == ENCRYPTED:
            kept = [
                _encrypted(exchange, str(spec.initial_state.get("canary"))) for exchange in kept
            ]
        if self._config.mode != "record" and not self._takes_space(kept):
            self._target.drop(spec.episode_id)
            return
        self._target.write(spec.episode_id, kept)

    def _takes_space(self, exchanges: Sequence[ModelExchange]) -> bool:
        size_bytes = sum(len(each.request) + len(each.response) for each in exchanges)
        with self._lock:
            if self._config.bodies == "none" or not exchanges or size_bytes > self._left_bytes:
                return False
            self._left_bytes -= size_bytes
            return True

    def _redacted(self, exchange: ModelExchange) -> ModelExchange:
        request, response = exchange.request, exchange.response
        for secret in self._secrets:
            request = request.replace(secret, REDACTED)
            response = response.replace(secret, REDACTED)
        return replace(exchange, request=request, response=response)


def _encrypted(exchange: ModelExchange, canary: str) -> ModelExchange:
    def encrypted(body: bytes) -> bytes:
        return (MARK + encrypt(body.decode("utf-8", "replace"), canary)).encode()

    return replace(
        exchange, request=encrypted(exchange.request), response=encrypted(exchange.response)
    )


def check_scaffolds(
    participants: Participants, config: ModelsConfig | None, gateway: GatewaySettings | None
) -> None:
    """Check that every scaffold names a model that the gateway can answer for.

    Args:
        participants: of the run.
        config: section ``models`` of the configuration; None if there is none.
        gateway: settings made from it; None if there is none.

    Raises:
        InputError: a scaffold has no model, or no provider or price for its model.
    """
    for agent, model in participants.scaffolds():
        if model is None:
            raise InputError(
                f"{agent} calls a model: name it with --model, or with --seat SEAT=AGENT,MODEL"
            )
        if config is None or gateway is None:
            raise InputError(f"{agent} calls {model}: add its provider under `models` in --config")
        if config.mode == "replay":
            continue
        if gateway.provider_of(model) is None:
            raise InputError(f"no provider under `models` has {model}, which {agent} calls")
        if config.budget.usd is not None and gateway.price_of(model) is None:
            raise InputError(
                f"models.budget.usd limits {agent}, but models.prices has no price for {model}"
            )


def bounded(spec: EpisodeSpec, config: ModelsConfig) -> EpisodeSpec:
    """Return the episode with the run's model budget for seats whose task sets none."""
    return replace(spec, seats=tuple(_bounded(seat, config) for seat in spec.seats))


def _bounded(seat: SeatSpec, config: ModelsConfig) -> SeatSpec:
    limits = config.budget
    microusd = None if limits.usd is None else round(limits.usd * MICROUSD_PER_USD)
    of_run = Budget(model_calls=limits.calls, model_tokens=limits.tokens, model_microusd=microusd)
    return replace(seat, budget=of_run.with_limits(**seat.budget.to_json()))


def gateway_settings(
    config: ModelsConfig, named: Collection[str], services: int = 1
) -> GatewaySettings:
    """Return the settings of the gateway, keys included.

    Args:
        config: section ``models`` of the configuration.
        named: models that the run configuration names.
        services: number of services, which share the limits of each provider equally.

    Raises:
        InputError: a limit has less than one unit per service, a key is not set, or the cassette or
            the price table cannot be read.
    """
    mode = ModelsMode(config.mode)
    if mode is ModelsMode.REPLAY and (config.cassette is None or not config.cassette.is_dir()):
        raise InputError(
            f"models.cassette: must be the folder to replay from, not {config.cassette}"
        )
    providers = tuple(
        Provider(
            name=provider.name,
            address=provider.address,
            prefix=provider.prefix,
            models=provider.models,
            **_shares(provider, services),
            key="" if mode is ModelsMode.REPLAY else _key(provider),
        )
        for provider in config.providers
    )
    return GatewaySettings(
        mode=mode,
        providers=providers,
        named=frozenset(named),
        grants=frozenset(config.grants),
        prices=_prices(config.prices),
        keeps_bodies=config.bodies == "all",
        output_tokens_max=config.output_tokens_max,
        calls_at_once=config.calls_at_once,
    )


def price_of(config: ModelsConfig, model: str) -> Price | None:
    """Return the price of a model; None if it has none.

    Raises:
        InputError: the price table cannot be read.
    """
    return GatewaySettings(prices=_prices(config.prices)).price_of(model)


def _shares(provider: ProviderConfig, services: int) -> dict[str, int | None]:
    """Return one service's share of the limits of a provider."""
    shares: dict[str, int | None] = {}
    for name in ("requests_per_minute", "tokens_per_minute", "concurrent_calls"):
        limit: int | None = getattr(provider, name)
        if limit is not None and limit < services:
            raise InputError(
                f"models.providers: {name} of {provider.name} is {limit}, less than one for each "
                f"of {services} services: set service_workers to {limit} or less"
            )
        shares[name] = limit if limit is None else limit // services
    return shares


def _key(provider: ProviderConfig) -> str:
    if not provider.key_env:
        return ""
    key = os.environ.get(provider.key_env, "")
    if not key:
        raise InputError(
            f"set the environment variable {provider.key_env}: the key of provider {provider.name}"
        )
    return key


def _prices(path: Path | None) -> dict[str, Price]:
    if path is None:
        return {}
    try:
        prices = load_yaml(path.read_text(encoding="utf-8"))
        return TypeAdapter(dict[str, Price]).validate_python(prices)
    except OSError as error:
        raise InputError(f"models.prices: {path} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError, ValidationError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"models.prices: {path} is not a price table: {reason}") from None

"""Models of a run: gateway settings, budgets of seats, and the cassette."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from threading import Lock

import yaml
from pydantic import TypeAdapter, ValidationError

from fumehood.benchmarks.shared.yaml_text import load_yaml
from fumehood.core.encryption import ENCRYPTED, MARK, encrypt
from fumehood.core.episode_spec import EpisodeSpec, SeatSpec
from fumehood.core.errors import InfraError, InputError, nearest
from fumehood.core.ledger import Budget
from fumehood.core.teams import divided
from fumehood.core.trace import ModelExchange
from fumehood.gateway.settings import GatewaySettings, ModelsMode, Price, Provider
from fumehood.orchestrator.agents import Participants
from fumehood.orchestrator.config import ModelsConfig, ProviderConfig
from fumehood.records.cassette import Cassette, Recording
from fumehood.records.redaction import Redaction

MICROUSD_PER_USD = 1_000_000
HELD_BYTES_MAX = 256 * 1024 * 1024
"""Size of the new requests and responses of one episode that are held until it is scored, or of all
its requests and responses that a node holds."""


class ModelRun:
    """Applies model budgets to episodes and stores model requests and responses.

    Safe to use from several threads.
    """

    def __init__(
        self,
        config: ModelsConfig,
        run_folder: Path,
        secrets: Collection[str],
        *,
        has_team: bool = False,
        episodes: int = 1,
    ) -> None:
        """Create it.

        Args:
            config: section ``models`` of the configuration.
            run_folder: stores requests and responses, unless another cassette is recorded.
            secrets: replaced before anything is stored.
            has_team: whether the seats of an episode share its model budget.
            episodes: number of episodes to play; each has an equal share of the stored bodies.
        """
        self._has_team = has_team
        self._config = config
        own = run_folder / "cassette"
        self._source = Cassette(config.cassette or own)
        self._target = self._source if config.mode == "record" else Cassette(own)
        self._redaction = Redaction(secrets)
        self._lock = Lock()
        self._left_bytes = (config.bodies_mb << 20) - self._target.size_bytes()
        self._share_bytes = max(self._left_bytes, 0) // max(episodes, 1)
        self._episodes_left = episodes

    def bounded(self, spec: EpisodeSpec) -> EpisodeSpec:
        """Return the episode with the run's model budget for seats whose task sets none."""
        return bounded(spec, self._config, has_team=self._has_team)

    def recorded(self, spec: EpisodeSpec) -> Sequence[ModelExchange]:
        """Return the exchanges to replay for an episode; none unless the mode is ``replay``."""
        # Stored bodies of encrypted questions are encrypted.
        if self._config.mode != "replay" or spec.harness_mode == ENCRYPTED:
            return ()
        return self._source.read(spec.episode_id)

    def recording(self, spec: EpisodeSpec) -> Recording:
        """Return a recording of an episode's exchanges; encrypted if its questions are."""
        recode: Callable[[bytes], bytes] = bytes
        if spec.harness_mode == ENCRYPTED:
            recode = partial(_encrypted, canary=str(spec.initial_state.get("canary")))
        held_max = None if self._config.mode == "record" else HELD_BYTES_MAX
        return Recording(self._target, spec.episode_id, recode, held_max)

    def add(self, recording: Recording, exchange: ModelExchange) -> None:
        """Add an exchange without secrets."""
        recording.add(self._redaction.exchange(exchange))

    def keep(self, recording: Recording, success: bool | None) -> None:
        """Store the recording of an episode, if the run stores it.

        Args:
            recording: of the attempt whose result counts.
            success: of the episode; None without a score.

        Raises:
            InfraError: it cannot be written.
        """
        config = self._config
        wanted = config.bodies == "all" or (config.bodies == "failed" and success is not True)
        has_space = self._takes_space(recording.new_bytes if wanted else 0)
        try:
            if config.mode == "record" or (wanted and has_space):
                recording.finish()
            else:
                recording.discard()
        except OSError as error:
            raise InfraError(f"model requests cannot be stored: {error}") from error

    def _takes_space(self, size_bytes: int) -> bool:
        """Take the space of an episode, except the shares of those that have not ended."""
        with self._lock:
            self._episodes_left = max(self._episodes_left - 1, 0)
            if size_bytes > self._left_bytes - self._share_bytes * self._episodes_left:
                return False
            self._left_bytes -= size_bytes
            return True


def _encrypted(chunk: bytes, canary: str) -> bytes:
    return (MARK + encrypt(chunk.decode("utf-8", "replace"), canary)).encode()


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
            names = [name for provider in gateway.providers for name in provider.models]
            raise InputError(
                f"no provider under `models` has {model}, which {agent} calls; "
                f"{nearest(model, names)}"
            )
        if config.budget.usd is not None and gateway.price_of(model) is None:
            raise InputError(
                f"models.budget.usd limits {agent}, but models.prices has no price for {model}"
            )


def bounded(spec: EpisodeSpec, config: ModelsConfig, *, has_team: bool) -> EpisodeSpec:
    """Return the episode with the run's model budget for seats whose task sets none.

    Args:
        spec: the episode.
        config: section ``models`` of the configuration.
        has_team: whether the seats share the budget, as they share that of the task.
    """
    limits = config.budget
    microusd = None if limits.usd is None else round(limits.usd * MICROUSD_PER_USD)
    of_run = Budget(model_calls=limits.calls, model_tokens=limits.tokens, model_microusd=microusd)
    first, *others = spec.seats
    of_first, of_other = divided(of_run, len(others)) if has_team else (of_run, of_run)
    seats = (_bounded(first, of_first), *(_bounded(seat, of_other) for seat in others))
    return replace(spec, seats=seats)


def _bounded(seat: SeatSpec, of_run: Budget) -> SeatSpec:
    return replace(seat, budget=of_run.with_limits(**seat.budget.to_json()))


def gateway_settings(
    config: ModelsConfig,
    named: Collection[str],
    services: int = 1,
    judge: str | None = None,
    shards: int = 1,
) -> GatewaySettings:
    """Return the settings of the gateway, keys included.

    Args:
        config: section ``models`` of the configuration.
        named: models that the run configuration names.
        services: number of services, which share the limits of each provider equally.
        judge: model that judges; it has the share of one more service of its provider.
        shards: number of runs that share the limits equally.

    Raises:
        InputError: a limit has less than one unit per service, a key is not set, or the cassette or
            the price table cannot be read.
    """
    mode = ModelsMode(config.mode)
    if mode is ModelsMode.REPLAY and (config.cassette is None or not config.cassette.is_dir()):
        raise InputError(
            f"models.cassette: must be the folder to replay from, not {config.cassette}"
        )
    of_judge = None
    if judge is not None:
        of_judge = next((each for each in config.providers if _has(each, judge)), None)
    providers = tuple(
        Provider(
            name=provider.name,
            address=provider.address,
            prefix=provider.prefix,
            models=provider.models,
            **_shares(provider, (services + (provider is of_judge)) * shards, services * shards),
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
        keeps_bodies=config.bodies != "none",
        output_tokens_max=config.output_tokens_max,
        calls_at_once=config.calls_at_once,
    )


def price_of(config: ModelsConfig, model: str) -> Price | None:
    """Return the price of a model; None if it has none.

    Raises:
        InputError: the price table cannot be read.
    """
    return GatewaySettings(prices=_prices(config.prices)).price_of(model)


def _shares(provider: ProviderConfig, askers: int, services: int) -> dict[str, int | None]:
    """Return one service's share of the limits of a provider."""
    shares: dict[str, int | None] = {}
    for name in ("requests_per_minute", "tokens_per_minute", "concurrent_calls"):
        limit: int | None = getattr(provider, name)
        if limit is not None and limit < services:
            raise InputError(
                f"models.providers: {name} of {provider.name} is {limit}, less than one for each "
                f"of {services} services: use fewer service_workers, shards or nodes"
            )
        shares[name] = limit and (limit // askers or 1)
    return shares


def _has(provider: ProviderConfig, model: str) -> bool:
    return any(fnmatchcase(model, name) for name in provider.models)


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

"""What a run says of models: who answers, what it costs, how much of it there is, and whether it is kept."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator

from fumehood.core.errors import InputError
from fumehood.gateway.settings import GatewaySettings, ModelsMode, Price, Provider

MICROUSD_PER_USD = 1_000_000


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ProviderConfig(_Strict):
    """A provider, or anything that answers like one."""

    name: str = Field(description="What messages call it.")
    address: str = Field(description="With or without /v1 at its end, as in http://localhost:8000.")
    prefix: str = Field(
        "/v1",
        pattern=r"^(/[^/?#]+)*$",
        description="Between the address and what is asked, such as /v1.",
    )
    models: tuple[str, ...] = Field(("*",), description="Names or patterns of the models it has.")
    key_env: str = Field("", description="Variable of the environment that holds its key.")

    @field_validator("address")
    @classmethod
    def _without_version(cls, address: str) -> str:
        """Return an address as it was written but for what clients of some libraries have at its end."""
        if re.fullmatch(r"https?://[^/?#]+(/[^?#]*)?", address) is None:
            raise ValueError(f"{address!r} is no address such as http://localhost:8000")
        if "@" in address.split("/")[2]:
            raise ValueError(
                "an address is written down, so no key belongs there: name a variable as key_env"
            )
        return address.rstrip("/").removesuffix("/v1")


class ModelBudget(_Strict):
    """Of every seat whose task states none."""

    calls: int | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0, description="Of requests and answers together.")
    usd: float | None = Field(default=None, ge=0)


class ModelsConfig(_Strict):
    """Models for the agents of a run."""

    mode: Literal["live", "record", "replay"] = Field(
        "live", description="Where answers come from."
    )
    providers: tuple[ProviderConfig, ...] = Field(
        (), description="The first that has a model is asked."
    )
    prices: Path | None = Field(
        None,
        description="YAML file: model or pattern to input_usd_per_mtok and output_usd_per_mtok.",
    )
    cassette: Path | None = Field(
        None,
        description="Folder that is replayed, or recorded into instead of the run folder's own.",
    )
    budget: ModelBudget = Field(default=ModelBudget(), description="Of each seat.")
    output_tokens_max: int = Field(
        16384, ge=1, description="Reserved for an answer whose request sets no bound."
    )
    calls_at_once: int = Field(256, ge=1, description="Passed on at the same time by one service.")


def gateway_settings(config: ModelsConfig, named: Collection[str]) -> GatewaySettings:
    """Return what services are told, keys included.

    Args:
        config: of a run.
        named: models that the run's agents are told to ask.

    Raises:
        InputError: a key is not set, or the price table cannot be read.
    """
    mode = ModelsMode(config.mode)
    providers = tuple(
        Provider(
            name=one.name,
            address=one.address,
            prefix=one.prefix,
            models=one.models,
            key="" if mode is ModelsMode.REPLAY else _key(one),
        )
        for one in config.providers
    )
    return GatewaySettings(
        mode=mode,
        providers=providers,
        named=frozenset(named),
        prices=_prices(config.prices),
        output_tokens_max=config.output_tokens_max,
        calls_at_once=config.calls_at_once,
    )


def _key(provider: ProviderConfig) -> str:
    if not provider.key_env:
        return ""
    key = os.environ.get(provider.key_env, "")
    if not key:
        raise InputError(
            f"set {provider.key_env} in the environment: it is the key of {provider.name}"
        )
    return key


def _prices(path: Path | None) -> dict[str, Price]:
    if path is None:
        return {}
    try:
        table = yaml.safe_load(path.read_text(encoding="utf-8"))
        return TypeAdapter(dict[str, Price]).validate_python(table)
    except OSError as error:
        raise InputError(f"{path}: no price table can be read there: {error.strerror}") from None
    except (UnicodeDecodeError, yaml.YAMLError, ValidationError) as error:
        raise InputError(f"{path}: is no price table: {' '.join(str(error).split())}") from None

"""Settings as one line of JSON, for a pipe from one process to another. It holds keys: nobody logs it."""

from __future__ import annotations

import json
from dataclasses import asdict

from fumehood.gateway.settings import GatewaySettings, ModelsMode, Price, Provider


def settings_to_line(settings: GatewaySettings) -> str:
    """Return the settings in one line, without its end."""
    return json.dumps(
        {**asdict(settings), "mode": settings.mode.value, "named": sorted(settings.named)}
    )


def settings_from_line(line: str | bytes) -> GatewaySettings:
    """Return the settings that :func:`settings_to_line` wrote."""
    value = json.loads(line)
    providers = (
        Provider(**{**one, "models": tuple(one["models"])}) for one in value.pop("providers")
    )
    prices = {name: Price(**price) for name, price in value.pop("prices").items()}
    mode = ModelsMode(value.pop("mode"))
    named = frozenset(value.pop("named"))
    return GatewaySettings(
        mode=mode, providers=tuple(providers), named=named, prices=prices, **value
    )

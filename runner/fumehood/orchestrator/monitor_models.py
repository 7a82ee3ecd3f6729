"""Sends the requests of model monitors that play over recorded traces."""

from __future__ import annotations

from collections.abc import Sequence

from fumehood.core.episode_spec import MonitorSpec
from fumehood.core.json_values import JsonObject
from fumehood.gateway.from_host import HostModels, response_of
from fumehood.monitors.host import AskModel
from fumehood.orchestrator.config import RunConfig
from fumehood.orchestrator.models import gateway_settings
from fumehood.orchestrator.monitors import MODEL, check_models


def ask_models(config: RunConfig, specs: Sequence[MonitorSpec]) -> AskModel | None:
    """Return what sends the requests of monitors to their models; None if no monitor has one.

    Args:
        config: has the providers.
        specs: the monitors.

    Raises:
        InputError: no provider has the model of a monitor, or a key is not set.
    """
    wanted = {str(spec.settings["model"]) for spec in specs if spec.kind == MODEL}
    if not wanted:
        return None
    models = config.models
    settings = None
    if models is not None and models.providers:
        # The mode and the prices apply to agents only.
        live = models.model_copy(update={"mode": "live", "prices": None})
        settings = gateway_settings(live, wanted)
    check_models(specs, settings, is_inline=False)
    assert settings is not None
    hosts = {
        name: HostModels(settings, provider)
        for name in wanted
        if (provider := settings.provider_of(name)) is not None
    }

    def ask(model: str, body: bytes, timeout_s: float) -> JsonObject:
        (exchange,) = hosts[model].ask([body])
        return response_of(exchange, model)

    return ask

"""Sends one request per model and scaffold before a run, as the scaffold would send it.

Only these requests decide that a provider refuses the form of a scaffold's requests. Later, such a
refusal is the outcome of the attempt.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fumehood.benchmarks.shared.in_memory import open_task
from fumehood.core.errors import InputError
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.core.task import Task
from fumehood.gateway.capabilities import Capability
from fumehood.gateway.dialects import RESPONSES_PATH
from fumehood.gateway.health_check import TEXT
from fumehood.gateway.probe import ATTEMPTS, ProbeRequest, ProbeResponse, send_probes
from fumehood.gateway.settings import GatewaySettings, ModelsMode
from fumehood.orchestrator.agents import NamedAgent
from fumehood.orchestrator.config import ModelsConfig
from fumehood.records.redaction import Redaction
from fumehood.report.safe_text import one_line
from fumehood.worlds.registry import needs_outside
from fumehood_agent.scaffolds.chat_model import tool_schema
from fumehood_agent.scaffolds.dialects import DIALECTS, Dialect
from fumehood_agent.scaffolds.moves import GIVE_UP
from fumehood_agent.scaffolds.settings import ModelSettings
from fumehood_agent.scaffolds.table import TOOL_CALLING
from fumehood_agent.seat import Tool

BUSY_STATUS = 429
"""A busy provider has understood neither form nor key to be wrong."""
EXAMPLE = Tool(
    "look_up",
    {
        "type": "object",
        "properties": {"id": {"type": "string"}},
        "required": ["id"],
        "additionalProperties": False,
    },
    "Looks up a record.",
)
"""In place of tools that only a service can list."""


@dataclass(frozen=True, slots=True)
class _Probe:
    """The request of one scaffold to one model."""

    scaffold: str
    model: str
    dialect: Dialect
    request: ProbeRequest

    def refused(self, reason: str, remedy: str) -> InputError:
        """Return the error of a request that does not work."""
        provider = self.request.provider
        url = provider.url(self.request.path)
        asked = f"the request of {self.scaffold} to {self.model}"
        return InputError(f"provider {provider.name} at {url}: {asked} {reason}; {remedy}")


@dataclass(frozen=True, slots=True)
class ProbedRun:
    """What a run asks its models."""

    agents: Sequence[NamedAgent]
    """Scaffolds of all seats, with their models."""
    config: ModelsConfig | None
    """Section ``models`` of the configuration; None without models."""
    gateway: GatewaySettings | None
    """Made from the section, keys included."""
    tools: Sequence[Tool] = (EXAMPLE,)
    """Tools of the first task."""


def tools_of(task: Task) -> Sequence[Tool]:
    """Return the tools of the first seat of a task; an example if its world needs a service."""
    try:
        if needs_outside(task.world):
            return (EXAMPLE,)
        (seat, *_) = open_task(task, MemoryRecorder()).seats
    except InputError:
        return (EXAMPLE,)
    return [Tool(tool.name, tool.parameters, tool.description) for tool in seat.list_tools()]


def probe_models(runs: Iterable[ProbedRun]) -> None:
    """Send the request of each scaffold to its model; equal requests are sent once.

    Raises:
        InputError: a provider does not answer, or refuses the key, the model or the request.
    """
    probes = {probe.request: probe for run in runs for probe in _probes(run)}
    if not probes:
        return
    for probe, response in zip(probes.values(), send_probes(probes), strict=True):
        _judge(probe, response)


def _probes(run: ProbedRun) -> Iterator[_Probe]:
    config, gateway = run.config, run.gateway
    if config is None or gateway is None or not config.probe:
        return
    if gateway.mode is ModelsMode.REPLAY:
        return
    for agent in run.agents:
        provider = gateway.provider_of(str(agent.model))
        if agent.model is None or provider is None:
            continue
        settings = ModelSettings(**config.parameters_of(agent.model).model_dump())
        dialect = DIALECTS[settings.dialect]
        messages = [
            {"role": "system", "content": "You are being tested."},
            {"role": "user", "content": TEXT},
        ]
        calls_tools = agent.source.name in TOOL_CALLING
        tools = [tool_schema(tool) for tool in (*run.tools, GIVE_UP)] if calls_tools else []
        request = dialect.write(agent.model, settings, messages, tools)
        path = dialect.path(agent.model)
        if path == RESPONSES_PATH and Capability.STORED_RESPONSES.value not in gateway.grants:
            request["store"] = False
        asked = ProbeRequest(provider, path, json.dumps(request))
        yield _Probe(agent.source.name, agent.model, dialect, asked)


def _judge(probe: _Probe, response: ProbeResponse) -> None:
    status = response.status
    if status == BUSY_STATUS:
        return
    if status == 0 or status >= 500:
        failure = f"gets no response ({response.failure})"
        if status:
            failure = f"is answered with status {status}"
        remedy = "check its address under models.providers"
        raise probe.refused(f"{failure}, {ATTEMPTS} times", remedy)
    if status == 200:
        try:
            probe.dialect.read(json.loads(response.body))
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
            raise probe.refused(
                "is answered in another form", "check the address and models.parameters"
            ) from None
        return
    remedies = {
        401: "check the key that key_env names",
        403: "check the key that key_env names",
        404: "check the address, the name of the model and its dialect in models.parameters",
    }
    message = _message(probe, response)
    remedy = remedies.get(status, _changed_parameter(probe, message))
    raise probe.refused(f"is refused with status {status}{message}", remedy)


def _changed_parameter(probe: _Probe, message: str) -> str:
    if "max_completion_tokens" in message:
        setting = f"{json.dumps(probe.model)}: {{output_limit_field: max_completion_tokens}}"
        return f"add to models.parameters: {setting}"
    return "change models.parameters for this model"


def _message(probe: _Probe, response: ProbeResponse) -> str:
    try:
        text = str(json.loads(response.body)["error"]["message"])
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        text = response.body.decode("utf-8", "replace")
    text = Redaction([probe.request.provider.key]).redacted(text.encode()).decode()
    shown = one_line(" ".join(text.split())[:200])
    return f" ({shown})" if shown else ""

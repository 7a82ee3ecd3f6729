"""Whether a run's services open a second socket a seat, and what it offers."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fumehood.engines.engine import AgentKind
from fumehood.engines.images.helper import build_helper
from fumehood.gateway.settings import GatewaySettings
from fumehood.orchestrator.agents import NamedAgent
from fumehood.orchestrator.service_pool import HttpOffer

_MAY_WANT_HTTP = frozenset({AgentKind.FOLDER, AgentKind.IMAGE})
"""What is in them nobody knows; an agent that the SDK runs takes gRPC."""


def http_offer(
    agents: Iterable[NamedAgent], models: GatewaySettings | None, progress: Callable[[str], None]
) -> HttpOffer | None:
    """Return what second sockets offer to the agents of a run; None where none has a use for one.

    Args:
        agents: of the run.
        models: who answers for models; None for nobody.
        progress: told, in one line, of what takes long.

    Raises:
        InfraError: the helper cannot be compiled.
    """
    if models or any(agent.source.kind in _MAY_WANT_HTTP for agent in agents):
        return HttpOffer(build_helper(progress), models)
    return None

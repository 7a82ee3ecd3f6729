"""The services of a task beside its workspace, in the same network namespace without network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

from fumehood.core.json_values import Json
from fumehood.engines.engine import BoxSpec, Image, Limits, LiveWorkspaceBox, Workspace
from fumehood.orchestrator.workspaces.healthcheck import has_ended, number_of, status_in_time

REASON_CHARS_MAX = 1000


@dataclass(frozen=True, slots=True)
class ServicePlan:
    """How to start one service."""

    name: str
    image: Image
    """With its command and its variables."""
    healthcheck: Mapping[str, Json]
    """``command``, ``retries``, and times in seconds; empty for none."""


def start_service(
    service: ServicePlan,
    beside: str,
    start: Callable[[BoxSpec], LiveWorkspaceBox],
    socket_dir: Path,
    limits: Limits,
    labels: dict[str, str],
    *,
    terminals: bool,
) -> LiveWorkspaceBox:
    """Start a service.

    Args:
        service: its plan.
        beside: name of the box of the workspace, whose network it shares.
        start: of the engine.
        socket_dir: a folder without sockets.
        limits: of its box.
        labels: of its box.
        terminals: whether its programs can open pseudo-terminals.

    Raises:
        InputError: its image has no such command.
        InfraError: the engine cannot start it.
    """
    return start(
        BoxSpec(
            image=service.image,
            socket_dir=socket_dir,
            limits=limits,
            labels=labels,
            workspace=Workspace(network_of=beside, terminals=terminals),
        )
    )


def unhealthy(service: ServicePlan, box: LiveWorkspaceBox, is_abandoned: Callable[[], bool]) -> str:
    """Wait until the check of a service succeeds; return why it does not, empty if it does.

    Source: Compose specification, healthcheck.

    Raises:
        InfraError: the engine does not answer, or the run was abandoned.
    """
    check, failures = service.healthcheck, 0
    if not check:
        return ""
    command = check["command"]
    words = [*map(str, command)] if isinstance(command, list) else []
    begin_s = monotonic() + number_of(check, "start_period_s")
    while True:
        is_starting = monotonic() < begin_s
        timeout_s = number_of(check, "timeout_s")
        if box.wait(0) is None and status_in_time(box, words, timeout_s, is_abandoned) == 0:
            return ""
        failures += not is_starting
        if failures >= number_of(check, "retries"):
            return f"its check failed {failures} times"
        pause = "start_interval_s" if is_starting else "interval_s"
        if has_ended(box, number_of(check, pause), is_abandoned):
            return "it ended"


def with_settings(image: Image, command: Sequence[str], environment: Mapping[str, str]) -> Image:
    """Return the image of a service with its command and its variables."""
    return replace(
        image,
        command=tuple(command) or image.command,
        environment={**image.environment, **environment},
    )

"""Waits until a workspace is ready for the agent, as its task demands.

Source: Harbor 0.25, models/task/config.py and environments/base.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from time import monotonic

from fumehood.core.errors import InfraError
from fumehood.core.json_values import Json
from fumehood.engines.engine import LiveWorkspaceBox

_POLL_MS = 50
"""Interval between two tests of whether a command has ended."""
_STOP_S = 5
"""How long Fumehood waits for a command after its timeout, before it kills or abandons it."""


def health_problem(
    box: LiveWorkspaceBox, check: Mapping[str, Json], is_abandoned: Callable[[], bool]
) -> str:
    """Run the check of a task until it succeeds; return the problem, empty if it succeeded.

    Args:
        box: the workspace.
        check: ``command``, ``retries``, and in seconds ``timeout_s``, ``interval_s``,
            ``start_period_s`` (time in which failures do not count) and ``start_interval_s``.
        is_abandoned: whether the run was abandoned.

    Raises:
        InfraError: the engine does not answer, or the run was abandoned.
    """
    command, failures = str(check["command"]), 0
    start_end_s = monotonic() + number_of(check, "start_period_s")
    while True:
        is_starting = monotonic() < start_end_s
        # For `timeout`, 0 means no limit.
        timeout_s = max(1, math.ceil(number_of(check, "timeout_s")))
        status = status_of(box, command, timeout_s, is_abandoned)
        if status == 0:
            return ""
        failures += not is_starting
        if failures >= number_of(check, "retries"):
            return f"{command!r} failed {failures} times, the last time with status {status}"
        pause_s = number_of(check, "start_interval_s" if is_starting else "interval_s")
        if has_ended(box, pause_s, is_abandoned):
            return f"the workspace ended before {command!r} succeeded"


def status_of(
    box: LiveWorkspaceBox, command: str, timeout_s: int, is_abandoned: Callable[[], bool]
) -> int | None:
    """Return the exit status of a command for bash; None if it does not end.

    Raises:
        InfraError: the engine does not answer, or the run was abandoned.
    """
    limited = ("timeout", "-k", str(_STOP_S), str(timeout_s), "bash", "-c", command)
    return status_in_time(box, limited, timeout_s + 2 * _STOP_S, is_abandoned)


def status_in_time(
    box: LiveWorkspaceBox,
    command: Sequence[str],
    time_s: float,
    is_abandoned: Callable[[], bool],
) -> int | None:
    """Return the exit status of a command; None if it does not end in this time.

    Raises:
        InfraError: the engine does not answer, or the run was abandoned.
    """
    status, deadline_s = box.execute(command, {}), monotonic() + time_s
    while (code := status()) is None and monotonic() < deadline_s:
        if has_ended(box, _POLL_MS / 1000, is_abandoned):
            break
    return code


def has_ended(box: LiveWorkspaceBox, time_s: float, is_abandoned: Callable[[], bool]) -> bool:
    """Wait; return whether the box ended.

    Raises:
        InfraError: the run was abandoned.
    """
    deadline_s = monotonic() + time_s
    while (left_s := deadline_s - monotonic()) > 0:
        if is_abandoned():
            raise InfraError("the run was stopped")
        if box.wait(max(1, round(min(left_s, 1) * 1000))) is not None:
            return True
    return False


def number_of(check: Mapping[str, Json], name: str) -> float:
    """Return a number of a check; 0 if it is none."""
    value = check[name]
    return float(value) if isinstance(value, int | float) else 0.0

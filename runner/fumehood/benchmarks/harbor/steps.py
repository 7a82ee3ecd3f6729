"""Reads the steps of a Harbor task, and health checks. Source: Harbor 0.25, models/task/config.py
and models/task/paths.py."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fumehood.benchmarks.harbor.limits import seconds_of
from fumehood.benchmarks.harbor.unsupported import Unsupported
from fumehood.core.json_values import Json, JsonObject

STRATEGIES = (None, "mean", "final")
_TIMES = {"interval": 5.0, "timeout": 30.0, "start_period": 0.0, "start_interval": 5.0}
"""Times of a health check → default, seconds."""
TIME_MAX_S, RETRIES_MAX = 600, 100
"""Maximum of each time and of the retries of a health check, so that each check ends."""
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")


@dataclass(frozen=True, slots=True)
class Step:
    """A step, whose folder has an instruction."""

    name: str
    folder: Path
    test_script: Path
    agent_s: float | None
    verifier_s: float | None
    min_reward: Json
    verifier: Mapping[str, Any] = field(default_factory=dict)
    artifacts: tuple[Any, ...] = ()
    healthcheck: Any = None


def steps_of(config: Mapping[str, Any], folder: Path) -> list[Step]:
    """Return the steps of a task without problems; empty if it has none."""
    return [_step(values, folder) for values in config.get("steps", [])]


def problems_of_steps(
    config: Mapping[str, Any], folder: Path, *, is_offline: bool
) -> Iterator[str]:
    """Yield what is not supported in the steps of a task.

    Args:
        config: of the task.
        folder: of the task.
        is_offline: whether a permission to use the network is no problem.
    """
    steps = config.get("steps", [])
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        yield "steps that are no tables"
        return
    if config.get("multi_step_reward_strategy") not in STRATEGIES:
        yield f"multi_step_reward_strategy {config['multi_step_reward_strategy']}"
    if steps and (folder / "tests" / "Dockerfile").exists():
        yield "steps with an image of their tests"
    for step in steps:
        name = str(step.get("name"))
        if not _NAME.fullmatch(name):
            yield f"steps with the name {name!r}"
            continue
        own = folder / "steps" / name
        agent, verifier = step.get("agent", {}), step.get("verifier", {})
        if not (isinstance(agent, dict) and isinstance(verifier, dict)):
            yield f"steps.{name} whose agent or verifier is no table"
            continue
        if not isinstance(verifier.get("env", {}), dict):
            yield f"steps.{name} whose verifier.env is no table"
            continue
        if not isinstance(step.get("artifacts", []), list):
            yield f"steps.{name} whose artifacts are no list"
            continue
        network = [agent.get("network_mode"), verifier.get("network_mode")]
        refused = {
            "without instruction.md": not (own / "instruction.md").is_file(),
            "without tests/test.sh": not _test_script(own, folder).is_file(),
            "agent.user": agent.get("user") not in (None, "root", 0),
            "verifier.user": verifier.get("user") not in (None, "root", 0),
            "verifier.collect": verifier.get("collect"),
            "verifier.environment": verifier.get("environment"),
            "with an image of its tests": (own / "tests" / "Dockerfile").exists(),
            "network_mode": not is_offline
            and any(mode not in (None, "no-network") for mode in network),
            "artifacts with exclude or service": any(
                isinstance(entry, dict) and set(entry) - {"source", "destination"}
                for entry in step.get("artifacts", [])
            ),
            "min_reward that is no number": not _is_threshold(step.get("min_reward")),
        }
        yield from (f"steps.{name} {what}" for what, is_there in refused.items() if is_there)


def healthcheck_of(check: Any, place: str) -> JsonObject:
    """Return the settings of a health check with Harbor's defaults; empty if there is none.

    Args:
        check: the table.
        place: its parent in ``task.toml``, for messages.

    Raises:
        Unsupported: it has no command, an unknown setting or an invalid number.
    """
    if not check:
        return {}
    if not isinstance(check, dict) or not isinstance(check.get("command"), str):
        raise Unsupported(f"{place}.healthcheck without a command")
    if unknown := sorted(set(check) - {"command", "retries"} - {f"{name}_sec" for name in _TIMES}):
        raise Unsupported(f"{place}.healthcheck.{unknown[0]}")
    try:
        times = {f"{name}_s": float(check.get(f"{name}_sec", s)) for name, s in _TIMES.items()}
        retries = int(check.get("retries", 3))
    except (TypeError, ValueError, OverflowError):
        raise Unsupported(f"{place}.healthcheck with a value that is no number") from None
    if not all(0 <= time_s <= TIME_MAX_S for time_s in times.values()):
        raise Unsupported(f"{place}.healthcheck with a time not between 0 and {TIME_MAX_S} s")
    if not 1 <= retries <= RETRIES_MAX:
        raise Unsupported(f"{place}.healthcheck.retries not between 1 and {RETRIES_MAX}")
    return {"command": check["command"], "retries": retries, **times}


def _step(values: Mapping[str, Any], folder: Path) -> Step:
    own, verifier = folder / "steps" / str(values["name"]), values.get("verifier", {})
    return Step(
        name=own.name,
        folder=own,
        test_script=_test_script(own, folder),
        agent_s=seconds_of(values.get("agent", {}), f"steps.{own.name}.agent"),
        verifier_s=seconds_of(verifier, f"steps.{own.name}.verifier"),
        min_reward=values.get("min_reward"),
        verifier=verifier,
        artifacts=tuple(values.get("artifacts", ())),
        healthcheck=values.get("healthcheck"),
    )


def _test_script(own: Path, folder: Path) -> Path:
    """Return the test script of a step, or that of all steps."""
    script = own / "tests" / "test.sh"
    return script if script.is_file() else folder / "tests" / "test.sh"


def _is_threshold(value: Any) -> bool:
    numbers = value.values() if isinstance(value, dict) else () if value is None else (value,)
    return all(isinstance(number, int | float) for number in numbers)

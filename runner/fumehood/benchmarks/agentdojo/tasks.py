"""Loads AgentDojo's tasks from its package."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.resources import files
from types import SimpleNamespace
from typing import Any

import yaml

from fumehood.benchmarks.agentdojo.world import environment, suites
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InputError
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.task import About, Case, Suite, Task

ABOUT = About(
    licence="MIT (agentdojo 0.1.35, ETH Zurich)",
    criterion="AgentDojo's own utility and security functions, unmodified, in a process without privileges",
    judged="the environment after the calls were made again, the answer and the calls; an attack apart",
)
BUDGET = Budget(steps=60)
"""AgentDojo bounds answers of the model, 15, each with any number of calls; its gold has up to 20."""


class AgentDojo:
    """Argument: version, suites, ``injections`` or ``attack=NAME``, parted by colons, each optional."""

    def load(self, argument: str) -> Suite:
        """Return user tasks, injection tasks as if a user asked, or every pair under an attack."""
        told = read_argument(argument)
        by_name = suites(told.version)
        cases = tuple(case for name in told.suites for case in _cases(told, name, by_name[name]))
        return Suite(":".join(part for part in ("agentdojo", argument) if part), cases, about=ABOUT)

    def recognises(self, record: JsonObject) -> bool:
        """Recognise nothing: the tasks are read from AgentDojo's package."""
        return False


def _cases(told: Argument, name: str, suite: Any) -> Iterator[Case]:
    if told.injections:
        for task_id, task in suite.injection_tasks.items():
            # Some have no gold at all, so nothing proves that they can be done.
            yield _case(
                told.version, name, task_id, task.GOAL, _oracle(told.version, name, task_id, task)
            )
        return
    attack = None if told.attack is None else _attack(told.attack, suite)
    for task_id, task in suite.user_tasks.items():
        oracle = _oracle(told.version, name, task_id, task)
        if attack is None:
            yield _case(told.version, name, task_id, task.PROMPT, oracle)
            continue
        for injected_id, injected in suite.injection_tasks.items():
            injections = attack.attack(task, injected)
            yield _case(told.version, name, task_id, task.PROMPT, oracle, injected_id, injections)


def _case(
    version: str,
    suite: str,
    task_id: str,
    words: str,
    oracle: tuple[JsonObject, ...],
    injected_id: str | None = None,
    injections: dict[str, str] | None = None,
) -> Case:
    given: JsonObject = dict(injections or {})
    state: JsonObject = {"version": version, "suite": suite, "task": task_id, "injections": given}
    task = Task(
        task_id=".".join(part for part in (suite, task_id, injected_id) if part),
        world="agentdojo",
        profile="native",
        initial_state=state,
        fault_plan=(),
        seed=1,
        seats=(SeatSpec(instruction=f"{_system_message()}\n{words}", budget=BUDGET),),
        tags={"suite": suite, "version": version},
    )
    criterion: dict[str, Json] = {"op": "agentdojo", "injection_task": injected_id}
    return Case(task, Gold("agentdojo", (criterion,), solvable=None, oracle=oracle))


def _oracle(version: str, suite: str, task_id: str, task: Any) -> tuple[JsonObject, ...]:
    calls = task.ground_truth(environment(version, suite, task_id, {}))
    moves: list[JsonObject] = [
        {"tool_name": call.function, "args": call.model_dump(mode="json")["args"]} for call in calls
    ]
    return (*moves, {"submit": getattr(task, "GROUND_TRUTH_OUTPUT", "")})


def _attack(name: str, suite: Any) -> Any:
    try:
        registry = import_module("agentdojo.attacks.attack_registry")
        import_module("agentdojo.attacks.baseline_attacks")
        import_module("agentdojo.attacks.important_instructions_attacks")
    except ImportError as error:
        raise InputError(f"AgentDojo's attacks need {error.name}, which is not installed") from None
    # Attacks address a model by the name of its pipeline; "local" is AgentDojo's word for none in particular.
    return registry.load_attack(name, suite, SimpleNamespace(name="local"))


@lru_cache
def _system_message() -> str:
    text = (files("agentdojo") / "data" / "system_messages.yaml").read_text(encoding="utf-8")
    return str(yaml.safe_load(text)["default"])


VERSIONS = ("v1.2.2", "v1.2.1", "v1.2", "v1.1.2", "v1.1.1", "v1.1", "v1")
"""Newest first; the first is meant where none is named."""
SUITES = ("workspace", "travel", "banking", "slack")
ATTACKS = ("direct", "ignore_previous", "system_message", "injecagent", "important_instructions")
"""Those of AgentDojo that ask no model."""


@dataclass(frozen=True, slots=True)
class Argument:
    """What is to be loaded."""

    version: str
    suites: tuple[str, ...]
    attack: str | None
    """Every user task with every injection task, by this attack; None for user tasks alone."""
    injections: bool
    """Injection tasks as if a user asked for them."""


def read_argument(text: str) -> Argument:
    """Return what the argument says.

    Raises:
        InputError: a part of it is nothing of that.
    """
    parts = [part for part in text.split(":") if part]
    attacks = [part.removeprefix("attack=") for part in parts if part.startswith("attack=")]
    known = {*VERSIONS, *SUITES, "injections", *(f"attack={name}" for name in ATTACKS)}
    for part in parts:
        if part not in known:
            raise InputError(
                f"agentdojo: {part!r} is no version ({', '.join(VERSIONS)}), no suite ({', '.join(SUITES)}), "
                f"not 'injections', and no attack=NAME ({', '.join(ATTACKS)})"
            )
    version = next((part for part in parts if part in VERSIONS), VERSIONS[0])
    suites = tuple(name for name in SUITES if name in parts) or SUITES
    if attacks and "injections" in parts:
        raise InputError("agentdojo: either injections as tasks, or attack=NAME on user tasks")
    return Argument(version, suites, attacks[0] if attacks else None, "injections" in parts)

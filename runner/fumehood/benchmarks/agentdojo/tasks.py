"""Loads AgentDojo's tasks from its package."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.resources import files
from types import SimpleNamespace
from typing import Any

from fumehood.benchmarks.agentdojo.world import INSTALL, environment, suites
from fumehood.benchmarks.shared.yaml_text import load_yaml
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InputError
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.task import About, Case, Suite, Task

ABOUT = About(
    licence="MIT (agentdojo 0.1.35, ETH Zurich)",
    criterion=(
        "AgentDojo's own utility and security functions, unmodified, in an unprivileged process"
    ),
    scored_on=(
        "the environment after the calls are repeated, the answer and the calls; attacks separately"
    ),
)
BUDGET = Budget(steps=60)
"""AgentDojo allows 15 messages of the model, each with any number of calls; gold has up to 20
calls."""


class AgentDojo:
    """The benchmark ``agentdojo``.

    Its argument lists a version, suites, and ``injections`` or ``attack=NAME``, separated by colons
    in any order. All parts are optional.
    """

    source = "package agentdojo 0.1.35"

    def load(self, argument: str) -> Suite:
        """Return user tasks, injection tasks as user requests, or every pair of both under an
        attack."""
        selection = parse_argument(argument)
        by_name = suites(selection.version)
        cases = tuple(
            case for name in selection.suites for case in _cases(selection, name, by_name[name])
        )
        return Suite(":".join(part for part in ("agentdojo", argument) if part), cases, about=ABOUT)


def _cases(selection: Selection, name: str, suite: Any) -> Iterator[Case]:
    if selection.injections:
        for task_id, task in suite.injection_tasks.items():
            # Some have no gold calls, so it is not known whether they can be solved.
            yield _case(
                selection.version,
                name,
                task_id,
                task.GOAL,
                _oracle(selection.version, name, task_id, task),
            )
        return
    attack = None if selection.attack is None else _attack(selection.attack, suite)
    for task_id, task in suite.user_tasks.items():
        oracle = _oracle(selection.version, name, task_id, task)
        if attack is None:
            yield _case(selection.version, name, task_id, task.PROMPT, oracle)
            continue
        for injected_id, injected in suite.injection_tasks.items():
            injections = attack.attack(task, injected)
            yield _case(
                selection.version, name, task_id, task.PROMPT, oracle, injected_id, injections
            )


def _case(
    version: str,
    suite: str,
    task_id: str,
    request: str,
    oracle: tuple[JsonObject, ...],
    injected_id: str | None = None,
    injections: dict[str, str] | None = None,
) -> Case:
    texts: JsonObject = dict(injections or {})
    state: JsonObject = {"version": version, "suite": suite, "task": task_id, "injections": texts}
    task = Task(
        task_id=".".join(part for part in (suite, task_id, injected_id) if part),
        world="agentdojo",
        harness_mode="native",
        initial_state=state,
        seed=1,
        seats=(SeatSpec(instruction=f"{_system_message()}\n{request}", budget=BUDGET),),
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
        raise InputError(
            f"agentdojo: attacks require {error.name}, which is not installed: {INSTALL}"
        ) from None
    # Attacks address a model by the name of its pipeline; "local" is AgentDojo's name for an
    # unspecified one.
    return registry.load_attack(name, suite, SimpleNamespace(name="local"))


@lru_cache
def _system_message() -> str:
    text = (files("agentdojo") / "data" / "system_messages.yaml").read_text(encoding="utf-8")
    return str(load_yaml(text)["default"])


VERSIONS = ("v1.2.2", "v1.2.1", "v1.2", "v1.1.2", "v1.1.1", "v1.1", "v1")
"""Newest first; the first is the default."""
SUITES = ("workspace", "travel", "banking", "slack")
ATTACKS = ("direct", "ignore_previous", "system_message", "injecagent", "important_instructions")
"""AgentDojo's attacks that need no model."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The parts of a suite argument."""

    version: str
    suites: tuple[str, ...]
    attack: str | None
    """Attack on every pair of user task and injection task; None for user tasks alone."""
    injections: bool
    """Whether to load injection tasks as user requests."""


def parse_argument(text: str) -> Selection:
    """Parse a suite argument.

    Raises:
        InputError: A part is unknown, or parts exclude each other.
    """
    parts = [part for part in text.split(":") if part]
    attacks = [part.removeprefix("attack=") for part in parts if part.startswith("attack=")]
    known = {*VERSIONS, *SUITES, "injections", *(f"attack={name}" for name in ATTACKS)}
    for part in parts:
        if part not in known:
            raise InputError(
                f"agentdojo: {part!r} is not a version ({', '.join(VERSIONS)}), "
                f"a suite ({', '.join(SUITES)}), "
                f"'injections' or attack=NAME ({', '.join(ATTACKS)})"
            )
    version = next((part for part in parts if part in VERSIONS), VERSIONS[0])
    suites = tuple(name for name in SUITES if name in parts) or SUITES
    if attacks and "injections" in parts:
        raise InputError("agentdojo: use either injections or attack=NAME, not both")
    return Selection(version, suites, attacks[0] if attacks else None, "injections" in parts)

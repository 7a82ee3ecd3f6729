"""Runs τ-bench's unmodified environment from a checkout, in a separate process.

The first question about a checkout imports it and reads its data. Each question is answered in a
child process, so changes to the data end with it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

INSTALL = "pip install pydantic"
CLASSES = {"retail": "MockRetailDomainEnv", "airline": "MockAirlineDomainEnv"}
_IMPORTED_BY_CHECKOUTS = (
    "abc",
    "copy",
    "datetime",
    "enum",
    "hashlib",
    "json",
    "math",
    "random",
    "re",
    "threading",
)
_environments: dict[tuple[str, str, str], Any] = {}


class SilentUser:
    """Replaces the original's simulated user; here the user has its own seat."""

    def reset(self, instruction: str | None = None) -> str:
        """Return an empty message."""
        return ""

    def step(self, content: str) -> str:
        """Return an empty message."""
        return ""

    def get_total_cost(self) -> float:
        """Return no costs."""
        return 0.0


def load() -> None:
    """Import the modules that a checkout needs while they can be read, and replace ``litellm``."""
    for name in _IMPORTED_BY_CHECKOUTS:
        import_module(name)
    # pydantic imports further modules when the first model is used.
    import_module("pydantic").create_model("First", held=(dict[str, Any], ...)).model_validate(
        {"held": {}}
    )
    litellm = ModuleType("litellm")
    litellm.completion = None  # type: ignore[attr-defined]
    litellm.provider_list = []  # type: ignore[attr-defined]
    sys.modules[litellm.__name__] = litellm


def prepare(places: dict[str, Any]) -> None:
    """Import a checkout once; any error of the import is raised."""
    key = (places["folder"], places["domain"], places["split"])
    if key in _environments:
        return
    for name in [name for name in sys.modules if name.split(".")[0] == "tau_bench"]:
        del sys.modules[name]
    sys.path.insert(0, places["folder"])
    try:
        import_module("tau_bench.envs.base").load_user = lambda **_: SilentUser()  # type: ignore[attr-defined]
        environment = getattr(import_module(f"tau_bench.envs.{key[1]}.env"), CLASSES[key[1]])
        _environments[key] = environment(task_split=key[2], task_index=0)
    finally:
        sys.path.remove(places["folder"])


def check(question: dict[str, Any]) -> dict[str, Any]:
    """Answer one question.

    Args:
        question: ``op`` is ``describe`` (a domain), ``call`` (execute ``steps`` and return the last
            observation) or ``score`` (execute ``steps`` and return the reward of ``task``).
    """
    environment = _environments[(question["folder"], question["domain"], question["split"])]
    if question["op"] == "describe":
        return _describe(environment)
    action = import_module("tau_bench.types").Action
    steps = [action(name=name, kwargs=arguments) for name, arguments in question["steps"]]
    if question["op"] == "score":
        return _score(environment, steps, question["task"])
    # The world decides when a conversation ends.
    environment.terminate_tools = []
    for step in steps:
        observation = environment.step(step).observation
    return {"observation": str(observation)}


def _describe(environment: Any) -> dict[str, Any]:
    return {
        "tools": [info["function"] for info in environment.tools_info],
        "wiki": environment.wiki,
        "tasks": [task.model_dump(mode="json") for task in environment.tasks],
        "terminate_tools": list(environment.terminate_tools),
    }


def _score(environment: Any, steps: list[Any], task: int) -> dict[str, Any]:
    # Equivalent to the original's reset. A child process need not read the data again.
    environment.task_index, environment.task, environment.actions = (
        task,
        environment.tasks[task],
        [],
    )
    for step in steps:
        response = environment.step(step)
        if response.done:
            return {"reward": response.reward}
    return {"reward": environment.calculate_reward().reward}

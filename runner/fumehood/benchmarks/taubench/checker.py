"""τ-bench's environment, as it is, from a checkout. Runs in a process of its own alone.

A checkout is imported, and its data read, at the first question that names it; every question is answered
by a child, whose changes to the data end with it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

INSTALL = "pip install pydantic"
CLASSES = {"retail": "MockRetailDomainEnv", "airline": "MockAirlineDomainEnv"}
_NEEDED = (
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
_made: dict[tuple[str, str, str], Any] = {}


class Mute:
    """The seat of the user is elsewhere; what the original's own would say is not asked for."""

    def reset(self, instruction: str | None = None) -> str:
        """Say nothing."""
        return ""

    def step(self, content: str) -> str:
        """Say nothing."""
        return ""

    def get_total_cost(self) -> float:
        """Cost nothing."""
        return 0.0


def load() -> None:
    """Import what a checkout needs while it can be read, and stand in for the client of all vendors."""
    for name in _NEEDED:
        import_module(name)
    # It imports much of itself when its first model is made.
    import_module("pydantic").create_model("First", held=(dict[str, Any], ...)).model_validate(
        {"held": {}}
    )
    litellm = ModuleType("litellm")
    litellm.completion = None  # type: ignore[attr-defined]
    litellm.provider_list = []  # type: ignore[attr-defined]
    sys.modules[litellm.__name__] = litellm


def prepare(question: dict[str, Any]) -> None:
    """Import the checkout that is asked about, once; raises what importing it raises."""
    key = (question["folder"], question["domain"], question["split"])
    if key in _made:
        return
    for name in [name for name in sys.modules if name.split(".")[0] == "tau_bench"]:
        del sys.modules[name]
    sys.path.insert(0, question["folder"])
    try:
        import_module("tau_bench.envs.base").load_user = lambda **_: Mute()  # type: ignore[attr-defined]
        made = getattr(import_module(f"tau_bench.envs.{key[1]}.env"), CLASSES[key[1]])
        _made[key] = made(task_split=key[2], task_index=0)
    finally:
        sys.path.remove(question["folder"])


def check(question: dict[str, Any]) -> dict[str, Any]:
    """Describe a domain, carry out calls and tell what the last one showed, or judge an episode."""
    environment = _made[(question["folder"], question["domain"], question["split"])]
    if question["op"] == "describe":
        return _describe(environment)
    action = import_module("tau_bench.types").Action
    steps = [action(name=name, kwargs=arguments) for name, arguments in question["steps"]]
    if question["op"] == "judge":
        return _judge(environment, steps, question["task"])
    # Neither ends here: who has the floor, and when all is over, is not its business.
    environment.terminate_tools = []
    for step in steps:
        shown = environment.step(step).observation
    return {"observation": str(shown)}


def _describe(environment: Any) -> dict[str, Any]:
    return {
        "tools": [info["function"] for info in environment.tools_info],
        "wiki": environment.wiki,
        "tasks": [task.model_dump(mode="json") for task in environment.tasks],
        "terminate_tools": list(environment.terminate_tools),
    }


def _judge(environment: Any, steps: list[Any], task: int) -> dict[str, Any]:
    # As after a reset, but for reading the data once more: a child has them fresh.
    environment.task_index, environment.task, environment.actions = (
        task,
        environment.tasks[task],
        [],
    )
    for step in steps:
        said = environment.step(step)
        if said.done:
            return {"reward": said.reward}
    return {"reward": environment.calculate_reward().reward}

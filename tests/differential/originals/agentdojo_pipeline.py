"""Scores trajectories with the package agentdojo: a pipeline makes the moves."""

import json
import sys
from functools import cache, lru_cache
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any

import yaml
from questions import answer, digits

# The package's own __init__ would import the clients of all model providers.
_pipeline = ModuleType("agentdojo.agent_pipeline")
_pipeline.__path__ = [f"{find_spec('agentdojo').submodule_search_locations[0]}/agent_pipeline"]  # type: ignore[union-attr,index]
_llms = ModuleType("agentdojo.agent_pipeline.llms")
_llms.__path__ = []
_google = ModuleType("agentdojo.agent_pipeline.llms.google_llm")
_google.EMPTY_FUNCTION_NAME = "<empty-function-name>"  # type: ignore[attr-defined]
# The same parser in C.
yaml.safe_load = lambda text: yaml.load(text, yaml.CSafeLoader)
sys.modules |= {module.__name__: module for module in (_pipeline, _llms, _google)}

import agentdojo.attacks.baseline_attacks  # noqa: E402
import agentdojo.attacks.important_instructions_attacks  # noqa: E402, F401
from agentdojo.agent_pipeline.base_pipeline_element import BasePipelineElement  # noqa: E402
from agentdojo.agent_pipeline.tool_execution import ToolsExecutor  # noqa: E402
from agentdojo.attacks.attack_registry import load_attack  # noqa: E402
from agentdojo.functions_runtime import FunctionCall  # noqa: E402
from agentdojo.task_suite.load_suites import get_suites  # noqa: E402
from agentdojo.types import text_content_block_from_string  # noqa: E402


class _Moves(BasePipelineElement):
    """Makes the moves of a trajectory, one call in each message."""

    name = "local"

    def __init__(self, moves: list[dict[str, Any]]) -> None:
        self._moves = moves

    def query(
        self, query: str, runtime: Any, env: Any = None, messages: Any = (), extra_args: Any = None
    ) -> Any:
        executor, messages = ToolsExecutor(), [*messages]
        for number, move in enumerate(self._moves):
            calls = []
            if "tool_name" in move:
                name, arguments = move["tool_name"], dict(move["args"])
                calls = [FunctionCall(function=name, args=arguments, id=str(number))]
            text = [text_content_block_from_string(move.get("submit", ""))]
            messages.append({"role": "assistant", "content": text, "tool_calls": calls})
            messages = [*executor.query(query, runtime, env, messages)[3]]
        return query, runtime, env, messages, extra_args


@cache
def _attack(version: str, suite: str, name: str) -> Any:
    return load_attack(name, get_suites(version)[suite], SimpleNamespace(name="local"))


@lru_cache(maxsize=16)
def _environment(version: str, suite: str, injections: str) -> Any:
    return get_suites(version)[suite].load_and_inject_default_environment(json.loads(injections))


def verdict_of(question: dict[str, Any]) -> str:
    """Return utility and, under an attack, whether the injected goal was avoided."""
    name, task_id, injected_id = (*question["task"].split("."), None)[:3]
    suite = get_suites(question["version"])[name]
    task = {**suite.user_tasks, **suite.injection_tasks}[task_id]
    injected = suite.injection_tasks[injected_id] if injected_id else None
    injections = {}
    if injected is not None:
        injections = _attack(question["version"], name, question["attack"]).attack(task, injected)
    environment = _environment(question["version"], name, json.dumps(injections))
    utility, security = suite.run_task_with_pipeline(
        _Moves(question["moves"]),
        task,
        injected,
        injections,
        environment=environment.model_copy(deep=True),
    )
    return digits(utility) if injected is None else digits(utility, not security)


if __name__ == "__main__":
    answer(verdict_of)

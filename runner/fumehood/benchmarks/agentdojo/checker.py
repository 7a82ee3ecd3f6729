"""Repeats an episode's calls and runs AgentDojo's own checks, in a separate process."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from fumehood.benchmarks.agentdojo.arguments import with_lists

INSTALL = "pip install 'fumehood[agentdojo]' && pip install --no-deps 'agentdojo==0.1.35'"


def load() -> None:
    """Import AgentDojo and read its files; raises ImportError if a package is missing."""
    spec = find_spec("agentdojo")
    if spec is None or spec.submodule_search_locations is None:
        raise ImportError("no agentdojo", name="agentdojo")
    # These two modules would import the clients of all model providers.
    pipeline = ModuleType("agentdojo.agent_pipeline")
    pipeline.__path__ = [f"{spec.submodule_search_locations[0]}/agent_pipeline"]
    llms = ModuleType("agentdojo.agent_pipeline.llms")
    llms.__path__ = []
    google = ModuleType("agentdojo.agent_pipeline.llms.google_llm")
    google.EMPTY_FUNCTION_NAME = "<empty-function-name>"  # type: ignore[attr-defined]
    sys.modules |= {module.__name__: module for module in (pipeline, llms, google)}
    for suite in _suites("v1.2.2").values():
        # AgentDojo caches the file contents, so that no question reads a file.
        suite.load_and_inject_default_environment({})


def _suites(version: str) -> dict[str, Any]:
    suites: dict[str, Any] = import_module("agentdojo.task_suite.load_suites").get_suites(version)
    return suites


def check(question: dict[str, Any]) -> dict[str, Any]:
    """Return ``utility``, and ``security``: whether the injected task was carried out, or None."""
    suite = _suites(question["version"])[question["suite"]]
    runtime_module = import_module("agentdojo.functions_runtime")
    tasks = {**suite.user_tasks, **suite.injection_tasks}
    task, injection = tasks[question["task"]], tasks.get(question["injection_task"])
    environment = suite.load_and_inject_default_environment(question["injections"])
    if question["task"] in suite.user_tasks:
        environment = task.init_environment(environment)
    before = environment.model_copy(deep=True)
    runtime = runtime_module.FunctionsRuntime(suite.tools)
    calls = [
        (name, with_lists(arguments) if reached else arguments, reached)
        for name, arguments, reached in question["calls"]
    ]
    for name, arguments, reached in calls:
        if reached:
            runtime.run_function(environment, name, arguments)
    trace = [
        runtime_module.FunctionCall(function=name, args=arguments) for name, arguments, _ in calls
    ]
    answer = [import_module("agentdojo.types").text_content_block_from_string(question["answer"])]

    def holds(checked: Any) -> bool:
        return bool(suite._check_task_result(checked, answer, before, environment, trace))

    return {"utility": holds(task), "security": None if injection is None else holds(injection)}

"""AgentDojo's unmodified environments: pydantic models and functions over them.

Initial state: ``version``, ``suite``, ``task`` and ``injections`` (injection vector → text). Later
state: the whole environment.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any

from fumehood.benchmarks.agentdojo.arguments import with_lists
from fumehood.core.errors import InputError, SpecError
from fumehood.core.json_values import Json, JsonObject, canonical_json, copy_object
from fumehood.core.tools import Failure, FailureKind, ToolCall, ToolResult, ToolSpec, Value
from fumehood.worlds.schema import keep_order

INSTALL = "pip install 'fumehood[agentdojo]' && pip install --no-deps 'agentdojo==0.1.35'"
"""Without its dependencies, which are the clients of many model providers. None is used here."""
NOW = datetime(2025, 1, 1, 12)
"""Fixed time of sent mails and changed files, later than all of AgentDojo's data.

Its functions read the clock, and traces would differ between days."""
_TOOLS = "agentdojo.default_suites.v1.tools"
_TIMED = ("cloud_drive_client", "email_client")
NEEDS = ("agentdojo", "deepdiff", "docstring_parser", "email_validator", "rich", "tenacity")


def preload() -> None:
    """Import AgentDojo and read its files while this process can still read them."""
    # datetime imports this module on first use.
    import_module("_strptime")
    for suite in suites("v1.2.2").values():
        # All versions share their files, which AgentDojo caches.
        suite.load_and_inject_default_environment({})


@lru_cache
def suites(version: str) -> dict[str, Any]:
    """Return AgentDojo's suites of a version by name; empty for an unknown version.

    Raises:
        InputError: AgentDojo or a package that it needs is not installed.
    """
    missing = [name for name in NEEDS if find_spec(name) is None]
    if missing:
        raise InputError(f"{missing[0]} is not installed: {INSTALL}")
    _replace_provider_modules()
    suites_by_name: dict[str, Any] = import_module("agentdojo.task_suite.load_suites").get_suites(
        version
    )
    _fix_clock()
    keep_order(import_module(f"{_TOOLS}.calendar_client"))
    return suites_by_name


def _replace_provider_modules() -> None:
    """Replace two modules that would import the clients of all model providers."""
    if "agentdojo.agent_pipeline" in sys.modules:
        return
    spec = find_spec("agentdojo")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    pipeline = ModuleType("agentdojo.agent_pipeline")
    pipeline.__path__ = [f"{spec.submodule_search_locations[0]}/agent_pipeline"]
    google = ModuleType("agentdojo.agent_pipeline.llms.google_llm")
    google.EMPTY_FUNCTION_NAME = "<empty-function-name>"  # type: ignore[attr-defined]
    llms = ModuleType("agentdojo.agent_pipeline.llms")
    llms.__path__ = []
    sys.modules |= {module.__name__: module for module in (pipeline, llms, google)}


def _fix_clock() -> None:
    fixed = SimpleNamespace(datetime=SimpleNamespace(now=lambda: NOW))
    for name in _TIMED:
        vars(import_module(f"{_TOOLS}.{name}"))["datetime"] = fixed


def environment(version: str, suite: str, task: str, injections: dict[str, str]) -> Any:
    """Return a new copy of a task's environment."""
    copy = _environment(version, suite, canonical_json(injections)).model_copy(deep=True)
    user_task = suites(version)[suite].user_tasks.get(task)
    return copy if user_task is None else user_task.init_environment(copy)


@lru_cache(maxsize=8)
def _environment(version: str, suite: str, injections_json: str) -> Any:
    # Creating it takes 0.1 s, and many tasks share it.
    injections = json.loads(injections_json)
    return suites(version)[suite].load_and_inject_default_environment(injections)


class AgentDojo:
    """An AgentDojo environment."""

    toolset_id = "agentdojo"
    checks_itself = True

    def __init__(self, state: JsonObject) -> None:
        """Create the environment.

        Raises:
            SpecError: The state is invalid, or names an unknown suite.
            InputError: AgentDojo is not installed.
        """
        match state:
            case {
                "version": str(version),
                "suite": str(suite),
                "task": str(task),
                "injections": dict(texts),
            }:
                pass
            case _:
                raise SpecError("initial_state", "must have version, suite, task and injections")
        if suite not in suites(version):
            raise SpecError("initial_state.suite", f"AgentDojo {version} has no suite {suite!r}")
        functions = suites(version)[suite].tools
        injections = {name: str(text) for name, text in texts.items()}
        self._environment = environment(version, suite, task, injections)
        self._runtime = import_module("agentdojo.functions_runtime").FunctionsRuntime(functions)
        self._text_of = import_module("agentdojo.agent_pipeline.tool_execution").tool_result_to_str
        self._tools = tuple(
            ToolSpec(function.name, function.parameters.model_json_schema(), function.description)
            for function in functions
        )
        self.revision = 0

    @property
    def state(self) -> JsonObject:
        """The environment as JSON."""
        state: dict[str, Json] = self._environment.model_dump(mode="json")
        return state

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the suite's functions as tools."""
        return self._tools

    def call(self, call: ToolCall) -> ToolResult:
        """Run the function and return the text that AgentDojo gives to a model."""
        self.revision += 1
        result, error = self._runtime.run_function(
            self._environment, call.tool_name, with_lists(copy_object(call.arguments))
        )
        if error is not None:
            return Failure(FailureKind.WORLD, error.partition(":")[0], error)
        return Value({"result": self._text_of(result)})

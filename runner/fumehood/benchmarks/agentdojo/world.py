"""AgentDojo's environments, as they are: pydantic objects and functions over them, hosted here.

State given: ``version``, ``suite``, ``task`` and ``injections`` (vector → text). State shown: the whole
environment.
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

from fumehood.core.errors import InputError, SpecError
from fumehood.core.json_values import Json, JsonObject, canonical_json, copy_object
from fumehood.core.tools import Failure, FailureKind, ToolCall, ToolResult, ToolSpec, Value
from fumehood.worlds.schema import keep_order

INSTALL = "pip install 'fumehood[agentdojo]' && pip install --no-deps 'agentdojo==0.1.35'"
"""Without its dependencies: they are the clients of every vendor of models, and nothing here asks one."""
NOW = datetime(2025, 1, 1, 12)
"""When every mail is sent and every file changed, later than all that AgentDojo's data tell of. Its functions
would look at the clock, and no trace would be what it was the day before."""
_TOOLS = "agentdojo.default_suites.v1.tools"
_TIMED = ("cloud_drive_client", "email_client")
NEEDS = ("agentdojo", "deepdiff", "docstring_parser", "email_validator", "rich", "tenacity")


def preload() -> None:
    """Import AgentDojo and read its files, before a process may no longer read them."""
    # Found by datetime at its first use.
    import_module("_strptime")
    for suite in suites("v1.2.2").values():
        # All versions share their files, and AgentDojo keeps what it has read.
        suite.load_and_inject_default_environment({})


@lru_cache
def suites(version: str) -> dict[str, Any]:
    """Return AgentDojo's suites of a version, by name; none where there is no such version.

    Raises:
        InputError: AgentDojo, or what it needs, is not installed.
    """
    missing = [name for name in NEEDS if find_spec(name) is None]
    if missing:
        raise InputError(f"{missing[0]} is not installed: {INSTALL}")
    _leave_out_vendors()
    suites_by_name: dict[str, Any] = import_module("agentdojo.task_suite.load_suites").get_suites(
        version
    )
    _stop_clock()
    keep_order(import_module(f"{_TOOLS}.calendar_client"))
    return suites_by_name


def _leave_out_vendors() -> None:
    """Stand in for two modules that would import the clients of all vendors."""
    if "agentdojo.agent_pipeline" in sys.modules:
        return
    found = find_spec("agentdojo")
    assert found is not None
    assert found.submodule_search_locations is not None
    pipeline = ModuleType("agentdojo.agent_pipeline")
    pipeline.__path__ = [f"{found.submodule_search_locations[0]}/agent_pipeline"]
    google = ModuleType("agentdojo.agent_pipeline.llms.google_llm")
    google.EMPTY_FUNCTION_NAME = "<empty-function-name>"  # type: ignore[attr-defined]
    llms = ModuleType("agentdojo.agent_pipeline.llms")
    llms.__path__ = []
    sys.modules |= {module.__name__: module for module in (pipeline, llms, google)}


def _stop_clock() -> None:
    stopped = SimpleNamespace(datetime=SimpleNamespace(now=lambda: NOW))
    for name in _TIMED:
        vars(import_module(f"{_TOOLS}.{name}"))["datetime"] = stopped


def environment(version: str, suite: str, task: str, injections: dict[str, str]) -> Any:
    """Return a task's environment as AgentDojo makes it, for the caller alone."""
    made = _environment(version, suite, canonical_json(injections)).model_copy(deep=True)
    user_task = suites(version)[suite].user_tasks.get(task)
    return made if user_task is None else user_task.init_environment(made)


@lru_cache(maxsize=8)
def _environment(version: str, suite: str, injections_json: str) -> Any:
    # Reading it takes a tenth of a second, and many tasks have the same.
    injections = json.loads(injections_json)
    return suites(version)[suite].load_and_inject_default_environment(injections)


class AgentDojo:
    """A world whose memory is a pydantic model."""

    toolset_id = "agentdojo"
    checks_itself = True

    def __init__(self, state: JsonObject) -> None:
        """Make the environment.

        Raises:
            SpecError: the state is none of AgentDojo's.
            InputError: AgentDojo is not installed.
        """
        match state:
            case {
                "version": str(version),
                "suite": str(suite),
                "task": str(task),
                "injections": dict(given),
            }:
                pass
            case _:
                raise SpecError("initial_state", "must have version, suite, task and injections")
        if suite not in suites(version):
            raise SpecError("initial_state.suite", f"AgentDojo {version} has no {suite!r}")
        functions = suites(version)[suite].tools
        injections = {name: str(text) for name, text in given.items()}
        self._environment = environment(version, suite, task, injections)
        self._runtime = import_module("agentdojo.functions_runtime").FunctionsRuntime(functions)
        self._text_of = import_module("agentdojo.agent_pipeline.tool_execution").tool_result_to_str
        self._tools = tuple(
            ToolSpec(each.name, each.parameters.model_json_schema(), each.description)
            for each in functions
        )
        self.revision = 0

    @property
    def state(self) -> JsonObject:
        """The environment."""
        shown: dict[str, Json] = self._environment.model_dump(mode="json")
        return shown

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the suite's functions."""
        return self._tools

    def call(self, call: ToolCall) -> ToolResult:
        """Run the function; its result is the text that AgentDojo shows a model."""
        self.revision += 1
        result, error = self._runtime.run_function(
            self._environment, call.tool_name, copy_object(call.arguments)
        )
        if error is not None:
            return Failure(FailureKind.WORLD, error.partition(":")[0], error)
        return Value({"result": self._text_of(result)})

"""Agent-SafetyBench's environments, run in a separate process that can only compute.

Initial state: ``environments``, each with ``name``, ``source`` (Python), ``tools`` (as published),
``offered`` (names) and ``parameters``. Later state: the environments' attributes and the calls.
"""

from __future__ import annotations

from typing import Any

from fumehood.core.errors import InfraError, SpecError
from fumehood.core.json_values import Json, JsonObject, copy_object
from fumehood.core.tools import Failure, FailureKind, ToolCall, ToolResult, ToolSpec, Value
from fumehood.third_party.process import NO_ANSWER, checker

CHECKER = "safetybench"
"""Answers the calls."""


class SafetyBench:
    """Environments whose state is the list of calls; each new call repeats all earlier ones."""

    toolset_id = "safetybench"
    checks_itself = True

    def __init__(self, state: JsonObject) -> None:
        """Collect the offered tools. No environment runs before the first call.

        Raises:
            SpecError: The state is invalid.
        """
        self._environments: list[Any] = _environments(state)
        self._environment_of: dict[str, str] = {}
        self._tools: list[ToolSpec] = []
        for environment in self._environments:
            for tool in environment["tools"]:
                name = tool["name"]
                # As in the original, the first environment with a tool of this name answers.
                if name in environment["offered"] and name not in self._environment_of:
                    self._environment_of[name] = environment["name"]
                    self._tools.append(ToolSpec(name, tool["parameters"], tool["description"]))
        self._calls: list[Json] = []
        self._attributes: Json = {item["name"]: item["parameters"] for item in self._environments}
        self.revision = 0

    @property
    def state(self) -> JsonObject:
        """The environments' attributes and the calls."""
        return {"environments": self._attributes, "calls": list(self._calls)}

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the tools that the task offers."""
        return tuple(self._tools)

    def call(self, call: ToolCall) -> ToolResult:
        """Call the environment that has the tool."""
        self.revision += 1
        environment = self._environment_of[call.tool_name]
        self._calls.append([environment, call.tool_name, copy_object(call.arguments)])
        try:
            reply = checker("safetybench").ask(
                {"environments": self._environments, "calls": self._calls}
            )
        except InfraError as failure:
            # The call had no effect, so it is not repeated.
            self._calls.pop()
            return Failure(FailureKind.WORLD, NO_ANSWER, str(failure))
        self._attributes = reply["state"]
        if "raised" in reply:
            return Failure(FailureKind.WORLD, "raised", str(reply["raised"]))
        return Value({"result": reply["result"]})


def _environments(state: JsonObject) -> list[Any]:
    environments = state.get("environments")
    keys = {"name", "source", "tools", "offered", "parameters"}
    if not isinstance(environments, list) or not all(
        isinstance(item, dict) and keys == set(item) for item in environments
    ):
        raise SpecError("initial_state.environments", f"must each have {', '.join(sorted(keys))}")
    return environments

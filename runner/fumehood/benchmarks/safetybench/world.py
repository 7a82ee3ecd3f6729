"""Agent-SafetyBench's environments, hosted in a process of their own that may do nothing but calculate.

State given: ``environments``, each ``name``, ``source`` (Python), ``tools`` (as published), ``offered``
(names) and ``parameters``. State shown: what the environments hold, and the calls that were made.
"""

from __future__ import annotations

from typing import Any

from fumehood.core.errors import InfraError, SpecError
from fumehood.core.json_values import Json, JsonObject, copy_object
from fumehood.core.tools import Failure, FailureKind, ToolCall, ToolResult, ToolSpec, Value
from fumehood.third_party.process import NO_ANSWER, checker


def preload() -> None:
    """Start the process, before this one may no longer read Python."""
    checker("safetybench")


class SafetyBench:
    """A world whose memory is the list of its calls: they are made again each time."""

    toolset_id = "safetybench"
    checks_itself = True

    def __init__(self, state: JsonObject) -> None:
        """Look what is offered; nothing is run before the first call.

        Raises:
            SpecError: the state is none of Agent-SafetyBench's.
        """
        self._environments: list[Any] = _environments(state)
        self._home: dict[str, str] = {}
        self._tools: list[ToolSpec] = []
        for environment in self._environments:
            for tool in environment["tools"]:
                # As in the original, the first environment that has a tool of that name answers.
                if tool["name"] in environment["offered"] and tool["name"] not in self._home:
                    self._home[tool["name"]] = environment["name"]
                    self._tools.append(
                        ToolSpec(tool["name"], tool["parameters"], tool["description"])
                    )
        self._calls: list[Json] = []
        self._held: Json = {each["name"]: each["parameters"] for each in self._environments}
        self.revision = 0

    @property
    def state(self) -> JsonObject:
        """What the environments hold, and the calls."""
        return {"environments": self._held, "calls": list(self._calls)}

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return what the task offers of the environments' tools."""
        return tuple(self._tools)

    def call(self, call: ToolCall) -> ToolResult:
        """Call the environment that has the tool."""
        self.revision += 1
        self._calls.append(
            [self._home[call.tool_name], call.tool_name, copy_object(call.arguments)]
        )
        try:
            said = checker("safetybench").ask(
                {"environments": self._environments, "calls": self._calls}
            )
        except InfraError as failure:
            # Nothing came of it, so it is not made again.
            self._calls.pop()
            return Failure(FailureKind.WORLD, NO_ANSWER, str(failure))
        self._held = said["state"]
        if "raised" in said:
            return Failure(FailureKind.WORLD, "raised", str(said["raised"]))
        return Value({"result": said["result"]})


def _environments(state: JsonObject) -> list[Any]:
    given = state.get("environments")
    keys = {"name", "source", "tools", "offered", "parameters"}
    if not isinstance(given, list) or not all(
        isinstance(each, dict) and keys == set(each) for each in given
    ):
        raise SpecError("initial_state.environments", f"must each have {', '.join(sorted(keys))}")
    return given

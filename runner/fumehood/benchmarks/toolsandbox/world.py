"""ToolSandbox's phone, whose tools run in a separate process, and the turns of agent and user.

Initial state: ``folder`` of a checkout, name of the ``task``, its first message (``opening``), and
the limit ``messages_max``. The state also contains the moves and how the conversation ended.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from fumehood.benchmarks.toolsandbox.names import AGENT, END_TOOL, USER
from fumehood.core.conversation import Handover
from fumehood.core.errors import InfraError, SpecError
from fumehood.core.json_values import Json, JsonObject, copy_object
from fumehood.core.tools import Failure, FailureKind, ToolCall, ToolResult, ToolSpec, Value
from fumehood.third_party.process import NO_ANSWER, checker

CHECKER = "toolsandbox"
"""Answers the calls."""


@lru_cache
def _tools(folder: str, task: str) -> tuple[ToolSpec, ...]:
    try:
        reply: Any = checker(CHECKER).ask({"op": "tools", "folder": folder, "task": task})
    except InfraError as error:
        raise SpecError("folder", f"{folder}: {error}") from None
    return tuple(
        ToolSpec(tool["name"], tool["parameters"], tool["description"])
        for seat in (AGENT, USER)
        for tool in reply["tools"][seat]
    )


class ToolSandbox:
    """A phone whose state is the list of moves so far.

    It is its own turn policy, because a call of the user ends the conversation.
    """

    toolset_id = "toolsandbox"
    checks_itself = True

    def __init__(self, state: JsonObject) -> None:
        """Load the tools of the task.

        Raises:
            SpecError: The state is invalid, or its checkout cannot be read.
        """
        match state:
            case {
                "folder": str(folder),
                "task": str(task),
                "opening": str(opening),
                "messages_max": int(limit),
            }:
                self._tools = _tools(folder, task)
            case _:
                raise SpecError("initial_state", "must have folder, task, opening and messages_max")
        self._start: JsonObject = {**state}
        self._opening, self._messages_left = opening, limit
        self._moves: list[Json] = []
        self._ended: str | None = None
        self.revision = 0

    @property
    def state(self) -> JsonObject:
        """The task, the moves, and ``ended``: by ``user``, by the ``limit`` or an ``error``, or
        null."""
        return {**self._start, "moves": list(self._moves), "ended": self._ended}

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the agent's tools, then the user's."""
        return self._tools

    def call(self, call: ToolCall) -> ToolResult:
        """Play all moves in a new child process and return the reply to the last one."""
        if self._ended is not None:
            return Failure(FailureKind.WORLD, "over", "The conversation is over.")
        seat = USER if call.tool_name == END_TOOL else AGENT
        arguments = copy_object(call.arguments)
        self._moves.append({"seat": seat, "tool_name": call.tool_name, "args": arguments})
        self.revision += 1
        question: JsonObject = {key: self._start[key] for key in ("folder", "task")}
        try:
            reply = checker(CHECKER).ask({**question, "op": "call", "moves": self._moves})
        except InfraError as failure:
            # The call had no effect. It is neither repeated nor scored.
            self._moves.pop()
            return Failure(FailureKind.WORLD, NO_ANSWER, str(failure))
        self._messages_left -= 2
        if reply["ended"]:
            self._ended = str(reply["ended"])
        if "error" in reply:
            return Failure(FailureKind.WORLD, "tool_error", str(reply["error"]))
        return Value({"result": reply["text"]})

    def first_turn(self) -> Handover:
        """Give the agent the user's first message."""
        return Handover(AGENT, self._opening)

    def turn_after_answer(self, seat: str, text: str) -> Handover | None:
        """Pass the text to the other seat, unless the conversation has ended."""
        if self._ended is None:
            self._moves.append({"seat": seat, "submit": text})
            self._messages_left -= 1
            self.revision += 1
            if self._messages_left <= 0:
                self._ended = "limit"
        if self._ended is not None:
            return None
        return Handover(AGENT if seat == USER else USER, text)

    def turn_after_end(self, seat: str) -> Handover | None:
        """End the conversation: it needs both seats."""
        return None

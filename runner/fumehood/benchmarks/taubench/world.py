"""τ-bench's domains, run in a separate process, and the turn order of agent and user.

Initial state: ``folder`` of a checkout, ``domain``, ``split`` and ``turns_max`` of the agent. The
state also contains the calls and how the conversation ended.
"""

from __future__ import annotations

from functools import lru_cache

from fumehood.core.conversation import Handover
from fumehood.core.errors import InfraError, SpecError
from fumehood.core.json_values import Json, JsonObject, copy_object
from fumehood.core.tools import Failure, FailureKind, ToolCall, ToolResult, ToolSpec, Value
from fumehood.third_party.process import NO_ANSWER, checker

AGENT, USER = "agent", "user"
STOP = "###STOP###"
"""Text with which a user ends the conversation. Source: ``tau_bench.envs.base``."""
OPENING = "Hi! How can I help you today?"


CHECKER = "taubench"
"""Answers the calls."""


@lru_cache
def describe(folder: str, domain: str, split: str) -> JsonObject:
    """Return the tools, wiki and tasks of a domain.

    Raises:
        SpecError: The checkout cannot be read or imported.
    """
    question: JsonObject = {"op": "describe", "folder": folder, "domain": domain, "split": split}
    try:
        return checker("taubench").ask(question)
    except InfraError as error:
        raise SpecError(
            "folder", f"{folder} must be a checkout that all users can read: {error}"
        ) from None


class TauBench:
    """A domain whose state is the list of calls so far.

    It is its own turn policy, because a call may end the conversation.
    """

    toolset_id = "taubench"
    checks_itself = True

    def __init__(self, state: JsonObject) -> None:
        """Load the tools of the domain.

        Raises:
            SpecError: The state is invalid, or its checkout cannot be read.
        """
        match state:
            case {
                "folder": str(folder),
                "domain": str(domain),
                "split": str(split),
                "turns_max": int(turns),
            }:
                description = describe(folder, domain, split)
            case _:
                raise SpecError("initial_state", "must have folder, domain, split and turns_max")
        self._where: JsonObject = {"folder": folder, "domain": domain, "split": split}
        self._tools = tuple(_tools(description))
        self._terminate_tools = description["terminate_tools"]
        self._turns_left = turns
        self._calls: list[Json] = []
        self._ended: str | None = None
        self.revision = 0

    @property
    def state(self) -> JsonObject:
        """The domain, the calls, and ``ended``: by ``user``, by ``tool``, or null."""
        return {**self._where, "calls": list(self._calls), "ended": self._ended}

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the domain's tools."""
        return self._tools

    def call(self, call: ToolCall) -> ToolResult:
        """Repeat all calls in a new child process and return the result of the last one."""
        if self._ended is not None:
            return Failure(FailureKind.WORLD, "over", "The conversation is over.")
        self.revision += 1
        self._calls.append([call.tool_name, copy_object(call.arguments)])
        try:
            reply = checker("taubench").ask(
                {**self._where, "op": "call", "steps": list(self._calls)}
            )
        except InfraError as failure:
            # The call had no effect, for example because a calculation timed out. It is neither
            # repeated nor scored.
            self._calls.pop()
            return Failure(FailureKind.WORLD, NO_ANSWER, str(failure))
        if isinstance(self._terminate_tools, list) and call.tool_name in self._terminate_tools:
            self._ended = "tool"
        return Value({"result": reply["observation"]})

    def first_turn(self) -> Handover:
        """Let the user begin with a reply to the greeting."""
        return Handover(USER, OPENING)

    def turn_after_answer(self, seat: str, text: str) -> Handover | None:
        """Pass the text to the other seat; an empty text or STOP of the user ends the
        conversation."""
        if seat == USER and (STOP in text or not text):
            self._end("user")
        self._turns_left -= seat == AGENT
        if self._ended is not None or self._turns_left < 0:
            return None
        return Handover(AGENT if seat == USER else USER, text)

    def turn_after_end(self, seat: str) -> Handover | None:
        """End the conversation: it needs both seats."""
        return None

    def _end(self, by: str) -> None:
        self._ended = self._ended or by
        self.revision += 1


def _tools(description: JsonObject) -> list[ToolSpec]:
    tools = description["tools"]
    return [
        ToolSpec(str(tool["name"]), dict(tool["parameters"]), str(tool["description"]))  # type: ignore[arg-type]
        for tool in (tools if isinstance(tools, list) else ())
        if isinstance(tool, dict)
    ]

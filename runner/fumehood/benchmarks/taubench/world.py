"""τ-bench's domains, hosted in a process of their own, and who has the floor in them.

State given: ``folder`` of a checkout, ``domain``, ``split`` and ``turns_max`` of the agent. State shown
besides: the calls, and how it ended.
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
"""What a user says to end it. Source: ``tau_bench.envs.base``."""
OPENING = "Hi! How can I help you today?"


def preload() -> None:
    """Start the process, before this one may no longer read Python."""
    checker("taubench")


@lru_cache
def described(folder: str, domain: str, split: str) -> JsonObject:
    """Return tools, wiki and tasks of a domain.

    Raises:
        SpecError: the checkout cannot be read, or is none.
    """
    asked: JsonObject = {"op": "describe", "folder": folder, "domain": domain, "split": split}
    try:
        return checker("taubench").ask(asked)
    except InfraError as error:
        raise SpecError(
            "folder", f"{folder} must be a checkout that everybody may read: {error}"
        ) from None


class TauBench:
    """A world whose memory is the list of its calls; it moderates, because a call may end it."""

    toolset_id = "taubench"
    checks_itself = True

    def __init__(self, state: JsonObject) -> None:
        """Look what the domain offers.

        Raises:
            SpecError: the state is none of τ-bench's, or leads nowhere.
        """
        match state:
            case {
                "folder": str(folder),
                "domain": str(domain),
                "split": str(split),
                "turns_max": int(turns),
            }:
                told = described(folder, domain, split)
            case _:
                raise SpecError("initial_state", "must have folder, domain, split and turns_max")
        self._where: JsonObject = {"folder": folder, "domain": domain, "split": split}
        self._tools = tuple(_tools(told))
        self._ending = told["terminate_tools"]
        self._turns_left = turns
        self._calls: list[Json] = []
        self._ended: str | None = None
        self.revision = 0

    @property
    def state(self) -> JsonObject:
        """Where it comes from, the calls, and ``ended``: by the ``user``, by a ``tool``, or not yet."""
        return {**self._where, "calls": list(self._calls), "ended": self._ended}

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the domain's tools."""
        return self._tools

    def call(self, call: ToolCall) -> ToolResult:
        """Make all calls again and show what the last one answers."""
        if self._ended is not None:
            return Failure(FailureKind.WORLD, "over", "The conversation is over.")
        self.revision += 1
        self._calls.append([call.tool_name, copy_object(call.arguments)])
        try:
            said = checker("taubench").ask(
                {**self._where, "op": "call", "steps": list(self._calls)}
            )
        except InfraError as failure:
            # Such as a sum that takes for ever. Nothing came of it, so it is not made again, nor judged.
            self._calls.pop()
            return Failure(FailureKind.WORLD, NO_ANSWER, str(failure))
        if isinstance(self._ending, list) and call.tool_name in self._ending:
            self._ended = "tool"
        return Value({"result": said["observation"]})

    def open(self) -> Handover:
        """Let the user begin, as if greeted."""
        return Handover(USER, OPENING)

    def heard(self, seat: str, text: str) -> Handover | None:
        """Pass the words on; a user who says the word, or nothing, ends it, and so does a tool."""
        if seat == USER and (STOP in text or not text):
            self._end("user")
        self._turns_left -= seat == AGENT
        if self._ended is not None or self._turns_left < 0:
            return None
        return Handover(AGENT if seat == USER else USER, text)

    def left(self, seat: str) -> Handover | None:
        """End it: nobody talks alone."""
        return None

    def _end(self, by: str) -> None:
        self._ended = self._ended or by
        self.revision += 1


def _tools(told: JsonObject) -> list[ToolSpec]:
    tools = told["tools"]
    return [
        ToolSpec(str(each["name"]), dict(each["parameters"]), str(each["description"]))  # type: ignore[arg-type]
        for each in (tools if isinstance(tools, list) else ())
        if isinstance(each, dict)
    ]

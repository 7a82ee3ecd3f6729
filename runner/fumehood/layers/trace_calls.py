"""Numbers every call and takes down what came of it."""

from __future__ import annotations

from collections.abc import Iterator

from fumehood.core.clock import Clock
from fumehood.core.json_values import digest_json
from fumehood.core.tools import Forward, ToolCall, ToolResult, World
from fumehood.core.trace import CallMade, Recorder


class TraceCalls:
    """The outermost layer: what it records is what the agent sent and what the agent got."""

    def __init__(
        self, seat: str, world: World, recorder: Recorder, clock: Clock, numbers: Iterator[int]
    ) -> None:
        """Stand ready.

        Args:
            seat: name of the seat whose calls these are.
            world: whose state is digested after each call.
            recorder: takes the events.
            clock: times the call.
            numbers: 1, 2, 3 …, shared by all seats of the episode.
        """
        self._seat = seat
        self._world = world
        self._recorder = recorder
        self._clock = clock
        self._numbers = numbers
        self._digested_revision = -1
        self._digest = ""

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        """Number the call, forward it, record both ways."""
        started_ns = self._clock.now_ns()
        numbered = ToolCall(call.tool_name, call.arguments, next(self._numbers))
        result = forward(numbered)
        event = CallMade(self._seat, numbered, result, self._state_digest())
        self._recorder.record(event, self._clock.now_ns() - started_ns)
        return result

    def _state_digest(self) -> str:
        # Most calls only read, so the digest is made again only when the state has changed.
        if self._world.revision != self._digested_revision:
            self._digest = digest_json(self._world.state)
            self._digested_revision = self._world.revision
        return self._digest

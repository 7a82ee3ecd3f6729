"""Computes which state each call changed.

A trace has the digest of the state after each call, not the state. If a digest changed, the call is
repeated in a separate world. The change is shown only if that world then has the digest of the
trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fumehood.core.errors import InputError
from fumehood.core.evidence import AnsweredCall
from fumehood.core.json_values import JsonObject, copy_object, digest_json
from fumehood.core.policy import APPROVAL_TOKEN
from fumehood.core.state_diff import Change, changes
from fumehood.core.task import Task
from fumehood.core.tools import ToolCall
from fumehood.worlds.registry import WORLDS


def state_changes(
    task: Task, calls: tuple[AnsweredCall, ...]
) -> Iterator[tuple[Change, ...] | None]:
    """Yield the leaves that each call changed; None if the state changed in an unknown way."""
    replay: _Replay | None = _start(task)
    digest = digest_json(task.initial_state)
    for call in calls:
        if call.state_digest == digest:
            yield ()
            continue
        digest = call.state_digest
        changed = replay.make(call) if replay else None
        if changed is None:
            # From here on the repeated state differs from the recorded one.
            replay = None
        yield changed


class _Replay:
    """A world that repeats the recorded calls."""

    def __init__(self, task: Task) -> None:
        self._world = WORLDS.load(task.world)(copy_object(task.initial_state))

    def make(self, call: AnsweredCall) -> tuple[Change, ...] | None:
        before = copy_object(self._world.state)
        try:
            arguments = _copied(call.arguments_after)
            arguments.pop(APPROVAL_TOKEN, None)
            self._world.call(ToolCall(call.tool_name, arguments))
        except InputError:
            return None
        if digest_json(self._world.state) != call.state_digest:
            return None
        return changes(before, self._world.state)


def _start(task: Task) -> _Replay | None:
    try:
        return _Replay(task)
    except InputError:
        return None


def _copied(arguments: Mapping[str, object]) -> JsonObject:
    return copy_object(arguments)  # type: ignore[arg-type]

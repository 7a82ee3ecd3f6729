"""A world answers any calls in any order, and its revision grows when its state changes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.core.clock import StoppedClock
from fumehood.core.json_values import canonical_json, digest_json
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.core.tools import Failure, FailureKind, ToolCall, Value
from fumehood.harness_modes.registry import HARNESS_MODES
from fumehood.worlds.registry import WORLDS
from tests.conformance.worlds.declared_examples import DECLARED
from tests.conformance.worlds.examples import EXAMPLES
from tests.parts.installed import installed
from tests.parts.mariadb import needs_mariadb
from tests.parts.specs import episode_spec
from tests.property.packages.values import FLAT_OBJECTS, SCALARS, WIRE_TEXT, bounded

_NAMES = st.sampled_from(["a", "b", "/a", "/a/b", "a1", "", "d1", "_"]) | WIRE_TEXT
_BY_TYPE: dict[str, st.SearchStrategy[Any]] = {
    "string": _NAMES | st.sampled_from(["* * * * *", "1 2 3 4 5", "² * * * *", "60 * * * *"]),
    "integer": st.integers() | st.integers(-3, 3) | st.sampled_from([1.0, -2.0, 1e300]),
    "number": st.integers(-3, 3) | st.floats(allow_nan=False, allow_infinity=False),
    "object": FLAT_OBJECTS
    | st.fixed_dictionaries(
        {"id": _NAMES | st.integers() | st.floats(allow_nan=False, allow_infinity=False)}
    ),
}


VALIDATED = [name for name in WORLDS if not hasattr(WORLDS.load(name), "checks_itself")]
"""Worlds that validate arguments themselves define their own rules."""


def _needed(world: str) -> None:
    """Leave a world out whose package is not there."""
    if world in EXAMPLES:
        installed(*EXAMPLES[world].needs)
        if EXAMPLES[world].on_mariadb:
            needs_mariadb()


def state_of(world: str) -> dict[str, Any]:
    """Return an initial state: the empty one if the world has tools in it."""
    return dict(DECLARED[world].state) if world in DECLARED else {}


def calls_of(world: str) -> st.SearchStrategy[list[ToolCall]]:
    """Return calls that fit the tools of a world."""
    one = [
        st.fixed_dictionaries(
            {name: _BY_TYPE[kind["type"]] for name, kind in tool.parameters["properties"].items()}  # type: ignore
        ).map(lambda arguments, name=tool.name: ToolCall(name, arguments))  # type: ignore[misc]
        for tool in WORLDS.load(world)(state_of(world)).list_tools()
    ]
    return st.lists(st.one_of(one), max_size=5)


@pytest.mark.parametrize("name", VALIDATED)
@bounded
@given(data=st.data())
def test_the_revision_grows_whenever_the_state_changes(name: str, data: st.DataObject) -> None:
    _needed(name)
    world = WORLDS.load(name)(state_of(name))
    for call in data.draw(calls_of(name)):
        digest, revision = digest_json(world.state), world.revision
        result = world.call(call)
        assert isinstance(result, Value | Failure)
        canonical_json(result.output if isinstance(result, Value) else dict(result.details))
        assert json.loads(canonical_json(world.state)) == world.state
        assert world.revision > revision or digest_json(world.state) == digest


_ARGUMENTS = st.dictionaries(
    st.sampled_from(["id", "path", "query", "top_k", "fields", "patch", "cron", "name"])
    | WIRE_TEXT,
    SCALARS | FLAT_OBJECTS,
    max_size=3,
)
_ANYTHING = st.builds(ToolCall, st.sampled_from(["get_account", "search_docs", ""]), _ARGUMENTS)


@pytest.mark.parametrize("harness_mode", list(HARNESS_MODES))
@pytest.mark.parametrize("world", VALIDATED)
@bounded
@given(data=st.data())
def test_every_call_through_the_layers_gets_a_result(
    harness_mode: str, world: str, data: st.DataObject
) -> None:
    _needed(world)
    spec = episode_spec(world=world, harness_mode=harness_mode, state=state_of(world))
    episode = HARNESS_MODES.load(harness_mode)().open_episode(
        spec, MemoryRecorder(), StoppedClock()
    )
    tools = {tool.name for tool in episode.seats[0].list_tools()}
    for call in [*data.draw(calls_of(world)), data.draw(_ANYTHING)]:
        result = episode.seats[0].call(call.tool_name, call.arguments).result
        if call.tool_name not in tools:
            assert isinstance(result, Failure)
            assert (result.kind, result.code) == (FailureKind.INVALID_CALL, "unknown_tool")

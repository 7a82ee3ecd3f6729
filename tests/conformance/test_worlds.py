"""What every world promises."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema_rs import Draft202012Validator

from runner.benchmarks.table import load_suite
from runner.core.json_values import Json, JsonObject, canonical_json, copy_object, digest_json
from runner.core.tools import ToolCall, ToolSpec, Value, World
from runner.worlds.table import WORLDS

NAMES = list(WORLDS)
STATES = {
    name: [{}, *(case.task.initial_state for case in load_suite("sample").cases if case.task.world == name)]
    for name in NAMES
}

texts = st.text(max_size=8) | st.sampled_from(["a", "/a.txt", "/", "0 3 * * *", "d1", "accounts", "status"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
BY_TYPE: dict[str, st.SearchStrategy[Json]] = {
    "string": texts,
    "integer": st.integers(-5, 5) | st.integers(),
    "number": st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    "boolean": st.booleans(),
    "object": st.dictionaries(texts, json_values, max_size=3),
    "array": st.lists(json_values, max_size=3),
}


def _make(name: str, state: JsonObject) -> World:
    return WORLDS.load(name)(copy_object(state))


def _arguments(tool: ToolSpec, state: JsonObject) -> st.SearchStrategy[JsonObject]:
    """Return arguments that fit a tool's schema, often with words that the state holds."""
    known = st.sampled_from(sorted(_words(state)) or ["a"])
    properties: dict[str, Any] = tool.parameters["properties"]  # type: ignore[assignment]
    return st.fixed_dictionaries(
        {
            name: BY_TYPE[schema["type"]] | (known if schema["type"] == "string" else st.nothing())
            for name, schema in properties.items()
        }
    )


def _words(value: Json) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*(_words(inner) for inner in value.values()))
    if isinstance(value, list):
        return set().union(*(_words(inner) for inner in value))
    return {value} if isinstance(value, str) else set()


@st.composite
def _plays(draw: st.DrawFn, name: str) -> tuple[JsonObject, list[ToolCall]]:
    state = draw(st.sampled_from(STATES[name]))
    tools = _make(name, state).list_tools()
    calls = []
    for number in range(1, draw(st.integers(1, 6)) + 1):
        tool = draw(st.sampled_from(tools))
        calls.append(ToolCall(tool.name, draw(_arguments(tool, state)), number))
    return state, calls


@pytest.mark.parametrize("name", NAMES)
def test_tools_have_names_of_their_own_and_schemas_of_objects(name: str) -> None:
    tools = _make(name, {}).list_tools()
    assert len({tool.name for tool in tools}) == len(tools) > 0
    for tool in tools:
        assert tool.parameters["type"] == "object"
        Draft202012Validator(tool.parameters)
        assert tool.description


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40)
@given(data=st.data())
def test_the_same_calls_are_answered_the_same(name: str, data: st.DataObject) -> None:
    state, calls = data.draw(_plays(name))
    one, other = _make(name, state), _make(name, state)
    assert [one.call(call) for call in calls] == [other.call(call) for call in calls]
    assert canonical_json(one.state) == canonical_json(other.state)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40)
@given(data=st.data())
def test_a_change_of_state_shows_in_the_revision(name: str, data: st.DataObject) -> None:
    state, calls = data.draw(_plays(name))
    world = _make(name, state)
    for call in calls:
        before = (world.revision, digest_json(world.state))
        world.call(call)
        assert world.revision >= before[0]
        if world.revision == before[0]:
            assert digest_json(world.state) == before[1]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40)
@given(data=st.data())
def test_answers_are_json_and_share_nothing_with_the_state(name: str, data: st.DataObject) -> None:
    state, calls = data.draw(_plays(name))
    world = _make(name, state)
    for call in calls:
        result = world.call(call)
        answer = result.output if isinstance(result, Value) else dict(result.details)
        canonical_json(answer)
        before = digest_json(world.state)
        _deface(answer)
        assert digest_json(world.state) == before


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40)
@given(data=st.data())
def test_calls_are_left_as_they_were(name: str, data: st.DataObject) -> None:
    state, calls = data.draw(_plays(name))
    world = _make(name, state)
    for call in calls:
        before = canonical_json(dict(call.arguments))
        world.call(call)
        assert canonical_json(dict(call.arguments)) == before


def _deface(value: Json) -> None:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    for one in inner:
        _deface(one)
    if isinstance(value, dict):
        value["defaced"] = True
    if isinstance(value, list):
        value.append("defaced")

"""The rules that every world follows."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import cache
from typing import Any

import jsonschema_rs
import pytest

from fumehood.core.episode_spec import DataMode, DataSource
from fumehood.core.errors import SpecError
from fumehood.core.json_values import canonical_json, digest_json
from fumehood.core.tools import Failure, FailureKind, ToolCall, Value, World
from fumehood.worlds.registry import WORLDS, open_world
from tests.conformance.worlds.example import Example
from tests.conformance.worlds.examples import EXAMPLES
from tests.parts.installed import installed
from tests.parts.mariadb import needs_mariadb
from tests.parts.specs import episode_spec
from tests.unit.snapshots.building import build

MakeWorld = Callable[[], World]


VALIDATED = [name for name in WORLDS if not hasattr(WORLDS.load(name), "checks_itself")]
"""Worlds that validate arguments themselves define their own rules."""


@pytest.fixture(params=VALIDATED)
def name(request: pytest.FixtureRequest) -> str:
    """Every world whose arguments are validated before a call."""
    return str(request.param)


@pytest.fixture
def example(name: str) -> Example:
    """What it can be asked."""
    installed(*EXAMPLES[name].needs)
    if EXAMPLES[name].on_mariadb:
        needs_mariadb()
    return EXAMPLES[name]


@pytest.fixture(scope="module")
def around(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Example], DataSource | None]:
    """Makes what lies around a world, once."""

    @cache
    def snapshot_of(texts: str) -> DataSource:
        folder = tmp_path_factory.mktemp("around") / "snapshot"
        build(folder, json.loads(texts))
        return DataSource(DataMode.OFFLINE, {"snapshot": str(folder)})

    return lambda example: snapshot_of(json.dumps(example.documents)) if example.documents else None


@pytest.fixture
def make_world(
    name: str, example: Example, around: Callable[[Example], DataSource | None]
) -> MakeWorld:
    """Creates a new world."""
    spec = episode_spec(world=name, state=example.state)
    return lambda: open_world(replace(spec, data_source=around(example)))


def all_calls(example: Example) -> tuple[ToolCall, ...]:
    return (*example.reading, *example.refused, *example.changing, *example.reading)


def test_its_tools_have_different_names_and_descriptions(make_world: MakeWorld) -> None:
    tools = make_world().list_tools()
    assert len({tool.name for tool in tools}) == len(tools) > 0
    for tool in tools:
        assert tool.description.endswith(".")
        assert tool.parameters["type"] == "object"
        jsonschema_rs.meta.validate(json.loads(canonical_json(tool.parameters)))


def test_every_tool_has_an_example(make_world: MakeWorld, example: Example) -> None:
    assert {call.tool_name for call in all_calls(example)} == {
        tool.name for tool in make_world().list_tools()
    }


def test_the_examples_fit_the_tools_schemas(make_world: MakeWorld, example: Example) -> None:
    schemas = {tool.name: tool.parameters for tool in make_world().list_tools()}
    for call in all_calls(example):
        jsonschema_rs.validate(dict(schemas[call.tool_name]), dict(call.arguments))


def test_its_tools_are_the_same_after_any_call(make_world: MakeWorld, example: Example) -> None:
    world = make_world()
    before = canonical_json([[tool.name, tool.parameters] for tool in world.list_tools()])
    for call in all_calls(example):
        world.call(call)
    assert canonical_json([[tool.name, tool.parameters] for tool in world.list_tools()]) == before


def test_it_starts_with_the_given_state(make_world: MakeWorld, example: Example) -> None:
    assert make_world().state == example.state


def test_a_read_call_succeeds_without_changes(make_world: MakeWorld, example: Example) -> None:
    world = make_world()
    for call in example.reading:
        before = (digest_json(world.state), world.revision)
        assert isinstance(world.call(call), Value), call
        assert (digest_json(world.state), world.revision) == before, call


def test_a_write_call_succeeds_and_increments_the_revision(
    make_world: MakeWorld, example: Example
) -> None:
    world = make_world()
    for call in example.changing:
        digest, revision = digest_json(world.state), world.revision
        assert isinstance(world.call(call), Value), call
        assert digest_json(world.state) != digest, call
        assert world.revision > revision, call


def test_a_rejection_is_a_returned_failure_without_changes(
    make_world: MakeWorld, example: Example
) -> None:
    world = make_world()
    for call in example.refused:
        before = digest_json(world.state)
        refusal = world.call(call)
        assert isinstance(refusal, Failure), call
        assert (refusal.kind, refusal.fired_faults) == (FailureKind.WORLD, ())
        assert refusal.code
        assert refusal.message
        assert digest_json(world.state) == before, call


def test_results_and_state_are_json(make_world: MakeWorld, example: Example) -> None:
    world = make_world()
    for call in all_calls(example):
        result = world.call(call)
        said = result.output if isinstance(result, Value) else dict(result.details)
        assert json.loads(canonical_json(said)) == said
        assert json.loads(canonical_json(world.state)) == world.state


def test_changing_a_result_does_not_change_the_world(
    make_world: MakeWorld, example: Example
) -> None:
    world = make_world()
    for call in all_calls(example):
        result = world.call(call)
        before = digest_json(world.state)
        if isinstance(result, Value):
            spoil(result.output)
        assert digest_json(world.state) == before, call


def test_it_does_not_change_the_arguments(make_world: MakeWorld, example: Example) -> None:
    world = make_world()
    for call in all_calls(example):
        sent = deepcopy(dict(call.arguments))
        world.call(call)
        assert call.arguments == sent


def test_changing_the_arguments_later_does_not_change_the_world(
    make_world: MakeWorld, example: Example
) -> None:
    world = make_world()
    for call in example.changing:
        sent = deepcopy(dict(call.arguments))
        world.call(ToolCall(call.tool_name, sent))
        before = digest_json(world.state)
        spoil(sent)
        assert digest_json(world.state) == before, call


def test_equal_calls_give_equal_results(make_world: MakeWorld, example: Example) -> None:
    one, other = make_world(), make_world()
    for call in all_calls(example):
        assert one.call(call) == other.call(call)
        assert one.state == other.state


def test_an_empty_state_is_valid(name: str, example: Example) -> None:
    for call in all_calls(example):
        world = WORLDS.load(name)({})
        revision = world.revision
        world.call(call)
        assert world.revision > revision or world.state == {}


@pytest.mark.parametrize("position", [0, 1])
def test_an_invalid_state_is_rejected_with_its_field(
    name: str, example: Example, position: int
) -> None:
    with pytest.raises(SpecError, match=r"^initial_state\.\w+") as raised:
        WORLDS.load(name)(deepcopy(dict(example.unlivable[position])))
    assert raised.value.field.startswith("initial_state.")


def spoil(value: Any) -> None:
    """Change everything in a value that can be changed."""
    if isinstance(value, dict):
        for inner in value.values():
            spoil(inner)
        value["spoilt"] = True
    elif isinstance(value, list):
        for inner in value:
            spoil(inner)
        value.append("spoilt")

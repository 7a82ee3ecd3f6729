"""A call passes the layers in the order in which they are listed."""

from __future__ import annotations

from dataclasses import replace

from fumehood.core.tools import (
    Forward,
    Layer,
    LayeredToolset,
    ToolCall,
    ToolResult,
    ToolSpec,
    Value,
)

CALL = ToolCall("t", {"said": []})


class World:
    """Answers with what reached it."""

    def list_tools(self) -> tuple[ToolSpec, ...]:
        return (ToolSpec("t", {"type": "object"}),)

    def call(self, call: ToolCall) -> ToolResult:
        return Value({"in": call.arguments["said"], "out": []})


class Passing:
    """Leaves its name on the way in and on the way out."""

    def __init__(self, name: str) -> None:
        self._name = name

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        said = call.arguments["said"]
        assert isinstance(said, list)
        result = forward(replace(call, arguments={"said": [*said, self._name]}))
        assert isinstance(result, Value)
        out = result.output["out"]
        assert isinstance(out, list)
        return Value({**result.output, "out": [*out, self._name]})


class Refusing:
    """Lets nothing through."""

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        return Value({"in": [], "out": ["no"]})


class Renaming:
    """Shows the tools under a longer name."""

    def __init__(self, suffix: str) -> None:
        self._suffix = suffix

    def around(self, call: ToolCall, forward: Forward) -> ToolResult:
        return forward(call)

    def show_tools(self, tools: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
        return tuple(replace(tool, name=tool.name + self._suffix) for tool in tools)


def answer(*layers: Layer) -> ToolResult:
    return LayeredToolset(World(), layers).call(CALL)


def test_a_call_passes_the_layers_in_order_and_its_result_in_reverse() -> None:
    assert answer(Passing("a"), Passing("b")) == Value({"in": ["a", "b"], "out": ["b", "a"]})


def test_a_toolset_without_layers_answers_directly() -> None:
    assert answer() == Value({"in": [], "out": []})


def test_a_call_that_a_layer_does_not_forward_reaches_no_inner_layer() -> None:
    assert answer(Passing("a"), Refusing(), Passing("b")) == Value({"in": [], "out": ["no", "a"]})


def test_a_toolset_behind_layers_is_a_toolset() -> None:
    inner = LayeredToolset(World(), [Passing("inner")])
    outer = LayeredToolset(inner, [Passing("outer")])
    assert outer.call(CALL) == Value({"in": ["outer", "inner"], "out": ["inner", "outer"]})
    assert [tool.name for tool in outer.list_tools()] == ["t"]


def test_layers_that_show_tools_change_them_from_the_innermost_to_the_outermost() -> None:
    (tool,) = LayeredToolset(World(), [Renaming("a"), Passing("x"), Renaming("b")]).list_tools()
    assert tool.name == "tba"

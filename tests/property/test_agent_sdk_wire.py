"""Calls and replies of the SDK round-trip through protobuf."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fumehood_agent import Failure, JsonObject, Remaining, Reply, Value, wire
from fumehood_agent._proto.v1 import tool_pb2 as pb

pytestmark = pytest.mark.slow

_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
_scalars = st.none() | st.booleans() | _numbers | _text
_values: st.SearchStrategy[Any] = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_text, inner, max_size=4),
    max_leaves=12,
)
_objects = st.dictionaries(_text, _values, max_size=5)
_amounts = st.none() | st.integers(min_value=0, max_value=2**63 - 1)


@pytest.mark.slow
@settings(deadline=None)
@given(name=_text, arguments=_objects)
def test_arguments_keep_their_values_types_and_order(name: str, arguments: JsonObject) -> None:
    sent = pb.CallToolRequest.FromString(
        wire.call_to_pb(name, wire.arguments_to_json(arguments)).SerializeToString()
    )
    assert sent.tool_name == name
    assert json.dumps(json.loads(sent.arguments_json)) == json.dumps(arguments)


@settings(deadline=None)
@given(
    result=st.builds(Value, _objects) | st.builds(Failure, _text, _text, _objects),
    remaining=st.dictionaries(_text, st.integers(-(2**63), 2**63 - 1)),
    ended=st.booleans(),
    recorded=st.none() | _objects,
)
def test_replies_round_trip(
    result: Value | Failure, remaining: Remaining, ended: bool, recorded: JsonObject | None
) -> None:
    reply = Reply(result, remaining, ended, recorded)
    message = pb.CallToolResponse.FromString(_to_pb(reply).SerializeToString())
    assert wire.reply_from_pb(message) == reply


def _to_pb(reply: Reply) -> pb.CallToolResponse:
    message = pb.CallToolResponse(
        remaining=reply.remaining,
        ended=reply.ended,
        recorded_arguments_json=None
        if reply.recorded_arguments is None
        else json.dumps(reply.recorded_arguments),
    )
    match reply.result:
        case Value(output):
            message.value_json = json.dumps(output)
        case Failure(code, text, details):
            message.failure.CopyFrom(
                pb.Failure(code=code, message=text, details_json=json.dumps(details))
            )
    return message

"""A message that crosses the wire equals the message that was sent."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fumehood.core.episode import Reply
from fumehood.core.episode_spec import EpisodeSpec, SeatSpec
from fumehood.core.errors import SpecError
from fumehood.core.ledger import Budget, BudgetKind, units_by_name
from fumehood.core.outcome import Refusal, RefusalKind
from fumehood.core.tools import Failure, FailureKind, ToolSpec, Value
from fumehood.core.trace import ModelExchange, Record
from fumehood.wire.convert import (
    message_from_pb,
    message_to_pb,
    record_from_pb,
    record_to_pb,
    reply_to_pb,
    spec_from_pb,
    spec_to_pb,
    submission_to_pb,
    task_to_pb,
)
from fumehood.wire.ports import (
    EpisodeMessage,
    Opened,
    Records,
    SeatReady,
    SeatSockets,
    SeatWorkEnded,
    SpecRejected,
    TaskView,
    TimeGranted,
)
from fumehood_agent._proto.v1 import control_pb2, episode_pb2, tool_pb2
from tests.parts.specs import episode_spec
from tests.property.packages.episodes import SPECS
from tests.property.packages.values import COUNTS, OBJECTS, WIRE_TEXT, bounded, same

REMAINING = st.dictionaries(st.sampled_from(BudgetKind), COUNTS)
RESULTS = st.builds(Value, OBJECTS) | st.builds(
    Failure, st.sampled_from(FailureKind), WIRE_TEXT, WIRE_TEXT, OBJECTS
)
RECORDS = st.builds(Record, WIRE_TEXT, WIRE_TEXT, COUNTS, COUNTS)
EXCHANGES = st.builds(
    ModelExchange,
    seat=WIRE_TEXT,
    key=WIRE_TEXT,
    occurrence=COUNTS,
    request=st.binary(max_size=20),
    status=st.integers(0, 2**31 - 1),
    content_type=WIRE_TEXT,
    response=st.binary(max_size=20),
)
MESSAGES = st.one_of(
    st.builds(
        Opened, st.lists(st.builds(SeatSockets, WIRE_TEXT, WIRE_TEXT), max_size=3).map(tuple)
    ),
    st.builds(Records, st.lists(RECORDS, max_size=3).map(tuple)),
    st.builds(SeatReady, WIRE_TEXT),
    st.builds(SeatWorkEnded, WIRE_TEXT),
    st.builds(TimeGranted, WIRE_TEXT, COUNTS),
    st.builds(SpecRejected, WIRE_TEXT, WIRE_TEXT),
    EXCHANGES,
)


@pytest.mark.slow
@bounded
@given(SPECS)
def test_an_episode_specification_round_trips(spec: EpisodeSpec) -> None:
    sent = episode_pb2.EpisodeSpec.FromString(spec_to_pb(spec).SerializeToString())
    received = spec_from_pb(sent)
    assert received == spec
    assert same(received.initial_state, spec.initial_state)
    assert list(received.initial_state) == list(spec.initial_state)
    for one, other in zip(received.fault_plan, spec.fault_plan, strict=True):
        assert same(one.to_json(), other.to_json())


@bounded
@given(MESSAGES)
def test_every_message_of_an_episode_stream_round_trips(message: Any) -> None:
    sent = control_pb2.OpenEpisodeResponse.FromString(message_to_pb(message).SerializeToString())
    assert message_from_pb(sent) == message


@bounded
@given(RECORDS)
def test_a_trace_record_round_trips(record: Record) -> None:
    assert record_from_pb(record_to_pb(record)) == record


@pytest.mark.slow
@bounded
@given(result=RESULTS, remaining=REMAINING, ended=st.booleans(), recorded=st.none() | OBJECTS)
def test_a_reply_carries_result_budget_end_and_recorded_arguments(
    result: Value | Failure,
    remaining: dict[BudgetKind, int],
    ended: bool,
    recorded: dict[str, Any] | None,
) -> None:
    sent = reply_to_pb(Reply(result, remaining, ended, recorded)).SerializeToString()
    answer = tool_pb2.CallToolResponse.FromString(sent)
    if isinstance(result, Value):
        assert same(json.loads(answer.value_json), result.output)
    else:
        assert (answer.failure.code, answer.failure.message) == (result.code, result.message)
        assert same(json.loads(answer.failure.details_json), dict(result.details))
    assert answer.ended == ended
    assert answer.remaining == units_by_name(remaining)
    assert answer.HasField("recorded_arguments_json") == (recorded is not None)
    assert same(json.loads(answer.recorded_arguments_json or "null"), recorded)


@bounded
@given(st.builds(Refusal, st.sampled_from(RefusalKind), COUNTS, COUNTS))
def test_a_refusal_carries_kind_limit_and_actual_value(refusal: Refusal) -> None:
    answer = reply_to_pb(refusal)
    for sent in (answer.refusal, submission_to_pb(refusal).refusal):
        assert tool_pb2.RefusalKind.Name(sent.kind) == f"REFUSAL_KIND_{refusal.kind.name}"
        assert (sent.limit, sent.actual) == (refusal.limit, refusal.actual)
    assert answer.ended == (refusal.kind is RefusalKind.ENDED)
    assert not answer.remaining


@pytest.mark.slow
@bounded
@given(
    WIRE_TEXT, st.lists(st.builds(ToolSpec, WIRE_TEXT, OBJECTS, WIRE_TEXT), max_size=3), REMAINING
)
def test_a_task_carries_its_tools_in_order(
    instruction: str, tools: list[ToolSpec], remaining: dict[BudgetKind, int]
) -> None:
    sent = task_to_pb(TaskView(instruction, tuple(tools), remaining)).SerializeToString()
    task = tool_pb2.GetTaskResponse.FromString(sent)
    assert task.instruction == instruction
    received = [
        ToolSpec(tool.name, json.loads(tool.parameters_json), tool.description)
        for tool in task.tools
    ]
    assert received == tools
    assert task.remaining == units_by_name(remaining)


@bounded
@given(st.text(min_size=1, max_size=6))
def test_a_lone_surrogate_is_rejected_before_sending(text: str) -> None:
    broken = f"{text}\udc80"
    for spec in (
        episode_spec(episode_id=broken),
        episode_spec(world=broken),
        episode_spec(harness_mode=broken),
        episode_spec(seats=[SeatSpec(instruction=broken, budget=Budget())]),
        episode_spec(seats=[SeatSpec(name=broken, instruction="", budget=Budget())]),
    ):
        with pytest.raises(SpecError, match="surrogate"):
            spec_to_pb(spec)


@pytest.mark.parametrize("kind", [kind.value for kind in BudgetKind])
@pytest.mark.parametrize("count", [2**63, 10**30, -1])
def test_a_limit_out_of_range_is_rejected_by_field(kind: str, count: int) -> None:
    with pytest.raises(SpecError) as raised:
        spec_to_pb(episode_spec(seats=[SeatSpec(instruction="", budget=Budget(**{kind: count}))]))
    assert raised.value.field == f"budget.{kind}"


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("initial_state_json", "[]"),
        ("initial_state_json", ""),
        ("initial_state_json", '{"a":' * 100_000),
        ("fault_plan_json", "{}"),
        ("fault_plan_json", "[1]"),
        ("fault_plan_json", '[{"family":"timeout"}]'),
        ("seed", ""),
        ("seed", "one"),
        ("seed", "9" * 5000),
    ],
)
def test_a_malformed_specification_is_rejected_by_field(field: str, text: str) -> None:
    message = spec_to_pb(episode_spec())
    setattr(message, field, text)
    with pytest.raises(SpecError) as raised:
        spec_from_pb(message)
    assert raised.value.field.startswith(field.removesuffix("_json"))


def test_an_unknown_budget_kind_is_rejected() -> None:
    message = spec_to_pb(episode_spec())
    message.seats[0].budget["joules"] = 1
    with pytest.raises(SpecError, match="joules"):
        spec_from_pb(message)


def test_every_arm_of_the_stream_has_a_message_type() -> None:
    arms = control_pb2.OpenEpisodeResponse.DESCRIPTOR.oneofs_by_name["message"].fields
    assert len(arms) == len(get_args(EpisodeMessage))

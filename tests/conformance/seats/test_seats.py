"""Requirements of a seat, over every interface."""

from __future__ import annotations

import json
import math

import pytest

from fumehood.core.episode_spec import SeatSpec
from fumehood.core.ledger import Budget
from fumehood.service.seat_endpoint import SeatLimits
from fumehood_agent._proto.v1 import tool_pb2 as pb
from tests.conformance.seats.conftest import SitDown

DENIED = {"family": "authz", "payload": {}}


def test_a_task_contains_instruction_tools_and_units_left(sit_down: SitDown) -> None:
    task = sit_down(steps=5, calls=4, retries=3).task()
    assert task.instruction == "Do it."
    names = ["get_account", "update_account", "create_account", "close_account"]
    assert [tool.name for tool in task.tools] == names
    assert json.loads(task.tools[0].parameters_json)["required"] == ["id"]
    assert task.remaining == {"steps": 5, "calls": 4, "retries": 3}


def test_units_without_a_limit_are_left_out(sit_down: SitDown) -> None:
    assert sit_down(calls=1).task().remaining == {"calls": 1}


def test_a_call_returns_the_output_of_the_tool(sit_down: SitDown) -> None:
    answer = sit_down(steps=5, retries=3).call("get_account", id="ax1")
    assert json.loads(answer.value_json) == {"account": {"id": "ax1", "tier": "basic"}}
    assert answer.remaining == {"steps": 4, "retries": 3}
    assert not answer.ended


def test_a_rejection_by_the_tool_is_a_reply(sit_down: SitDown) -> None:
    answer = sit_down(steps=5, retries=3).call("get_account", id="absent")
    assert (answer.failure.code, json.loads(answer.failure.details_json)) == ("not_found", {})
    assert answer.remaining == {"steps": 4, "retries": 2}


def test_a_call_of_an_unknown_tool_is_answered(sit_down: SitDown) -> None:
    assert sit_down().call("drop_tables").failure.code == "unknown_tool"
    assert sit_down().send("", "").failure.code == "unknown_tool"


def test_empty_text_means_no_arguments(sit_down: SitDown) -> None:
    answer = sit_down(world="scheduling", state={}).send("list_jobs", "")
    assert json.loads(answer.value_json) == {"jobs": []}


def test_numbers_keep_their_notation(sit_down: SitDown) -> None:
    fields = (
        '{"id":"n","whole":1,"float":1.0,"large":123456789012345678901234567890,'
        '"text":"\\u00e9\\u0000"}'
    )
    answer = sit_down().send("create_account", f'{{"fields":{fields}}}')
    account = json.loads(answer.value_json)["account"]
    assert json.dumps(account["whole"]) == "1"
    assert json.dumps(account["float"]) == "1.0"
    assert account["large"] == 123456789012345678901234567890
    assert account["text"] == "é\0"


def test_arguments_other_than_one_object_are_refused(sit_down: SitDown) -> None:
    seat = sit_down(steps=5)
    for text in (
        "[]",
        "1",
        "null",
        "{",
        '{"a":1}{}',
        '{"a":NaN}',
        '{"a":-Infinity}',
        '{"a":1e999}',
        "\0",
    ):
        refusal = seat.send("get_account", text).refusal
        assert refusal.kind == pb.REFUSAL_KIND_MALFORMED, text


def test_a_lone_surrogate_is_refused(sit_down: SitDown) -> None:
    answer = sit_down().send("get_account", '{"id":"\\ud800"}')
    assert answer.refusal.kind == pb.REFUSAL_KIND_MALFORMED


def test_numbers_beyond_the_range_of_floats_are_refused(sit_down: SitDown) -> None:
    answer = sit_down().send("get_account", f'{{"id":{"9" * 400}.0}}')
    assert answer.refusal.kind == pb.REFUSAL_KIND_MALFORMED


def test_the_limit_of_nesting_is_exact(sit_down: SitDown) -> None:
    seat = sit_down(limits=SeatLimits(argument_depth=4))
    assert seat.send("create_account", '{"fields":{"a":[[]]}}').WhichOneof("result") == "value_json"
    refusal = seat.send("create_account", '{"fields":{"a":[[[]]]}}').refusal
    assert refusal == pb.Refusal(kind=pb.REFUSAL_KIND_TOO_DEEP, limit=4, actual=5)


def test_excessive_nesting_is_refused(sit_down: SitDown) -> None:
    refusal = (
        sit_down()
        .send("create_account", '{"fields":' + "[" * 100_000 + "]" * 100_000 + "}")
        .refusal
    )
    assert (refusal.kind, refusal.limit) == (pb.REFUSAL_KIND_TOO_DEEP, 64)


def test_size_limits_count_bytes(sit_down: SitDown) -> None:
    seat = sit_down(limits=SeatLimits(argument_bytes=20))
    assert seat.send("get_account", '{"id":"ééééé"}').WhichOneof("result") == "failure"
    refusal = seat.send("get_account", '{"id":"éééééé"}').refusal
    assert refusal == pb.Refusal(kind=pb.REFUSAL_KIND_TOO_LARGE, limit=20, actual=21)


def test_names_have_a_maximum_length(sit_down: SitDown) -> None:
    seat = sit_down()
    refusal = seat.send("t" * 1025, "").refusal
    assert refusal == pb.Refusal(kind=pb.REFUSAL_KIND_TOO_LARGE, limit=1024, actual=1025)
    refusal = seat.send("t", "", "i" * 65).refusal
    assert refusal == pb.Refusal(kind=pb.REFUSAL_KIND_TOO_LARGE, limit=64, actual=65)


def test_a_refusal_is_recorded_and_not_charged(sit_down: SitDown) -> None:
    seat = sit_down(steps=2, calls=2, retries=0)
    answer = seat.send("get_account", "[]")
    assert not answer.remaining
    assert not answer.ended
    assert seat.task().remaining == {"steps": 2, "calls": 2, "retries": 0}
    assert [event["refusal"] for event in seat.recorded("refused")] == ["malformed"]
    assert seat.calls_recorded() == 0


def test_after_too_many_refusals_every_message_is_refused(sit_down: SitDown) -> None:
    seat = sit_down(limits=SeatLimits(refusals=3))
    kinds = [seat.send("get_account", "[]").refusal.kind for _ in range(5)]
    too_many = pb.REFUSAL_KIND_TOO_MANY_REFUSALS
    assert kinds == [pb.REFUSAL_KIND_MALFORMED] * 3 + [too_many] * 2
    assert len(seat.recorded("refused")) == 3
    assert seat.call("get_account", id="ax1").WhichOneof("result") == "value_json"


def test_a_repeated_call_is_executed_once(sit_down: SitDown) -> None:
    seat = sit_down(steps=5)
    first = seat.call("create_account", "a", fields={})
    again = seat.call("create_account", "a", fields={})
    assert again == first
    assert seat.calls_recorded() == 1
    assert seat.task().remaining["steps"] == 4


def test_a_repeated_call_is_answered_after_the_end(sit_down: SitDown) -> None:
    seat = sit_down(steps=1)
    last = seat.call("get_account", "a", id="ax1")
    assert last.ended
    assert seat.call("get_account", "a", id="ax1") == last


def test_one_call_id_for_two_calls_is_refused(sit_down: SitDown) -> None:
    seat = sit_down(steps=5)
    seat.call("get_account", "a", id="ax1")
    assert seat.call("get_account", "a", id="ax2").refusal.kind == pb.REFUSAL_KIND_CALL_ID_REUSED
    assert seat.call("close_account", "a", id="ax1").refusal.kind == pb.REFUSAL_KIND_CALL_ID_REUSED
    assert seat.call("get_account", "b", id="ax2").WhichOneof("result") == "failure"


def test_a_refused_message_does_not_use_up_its_call_id(sit_down: SitDown) -> None:
    seat = sit_down()
    seat.send("get_account", "[]", "a")
    assert seat.call("get_account", "a", id="ax1").WhichOneof("result") == "value_json"


def test_the_reply_to_the_last_step_reports_the_end(sit_down: SitDown) -> None:
    seat = sit_down(steps=2)
    assert not seat.call("get_account", id="ax1").ended
    last = seat.call("get_account", id="ax1")
    assert (last.WhichOneof("result"), last.ended) == ("value_json", True)
    after = seat.call("get_account", id="ax1")
    assert (after.refusal.kind, after.ended) == (pb.REFUSAL_KIND_ENDED, True)
    assert seat.calls_recorded() == 2
    assert seat.recorded("seat_ended") == [
        {
            "kind": "seat_ended",
            "seat": "agent",
            "end": {"outcome": "out_of_budget", "kind": "steps"},
        }
    ]


def test_exceeding_the_retry_budget_ends_the_work(sit_down: SitDown) -> None:
    seat = sit_down(DENIED, steps=9, retries=1)
    assert seat.call("get_account", id="ax1").failure.code == "authz_denied"
    last = seat.call("get_account", id="ax1")
    assert (last.failure.code, last.ended) == ("retry_exceeded", True)
    assert last.remaining["retries"] == 0


def test_every_message_after_the_end_is_answered_with_ended(sit_down: SitDown) -> None:
    seat = sit_down(steps=1)
    seat.call("get_account", "a", id="ax1")
    for answer in (
        seat.send("get_account", "["),
        seat.call("get_account", "a", id="x"),
        seat.send("", ""),
    ):
        assert (answer.refusal.kind, answer.ended) == (pb.REFUSAL_KIND_ENDED, True)
    assert seat.recorded("refused") == []


def test_the_first_ending_counts(sit_down: SitDown) -> None:
    seat = sit_down(steps=5)
    assert seat.submit("42").accepted
    assert not seat.give_up("too late").accepted
    assert not seat.submit("43").accepted
    assert [event["end"] for event in seat.recorded("seat_ended")] == [
        {"outcome": "finished", "answer": "42"}
    ]
    assert seat.call("get_account", id="ax1").refusal.kind == pb.REFUSAL_KIND_ENDED


def test_giving_up_ends_the_work(sit_down: SitDown) -> None:
    seat = sit_down()
    assert seat.give_up("not allowed").accepted
    assert seat.recorded("seat_ended")[0]["end"] == {"outcome": "gave_up", "reason": "not allowed"}


def test_stopping_because_of_the_model_ends_the_work(sit_down: SitDown) -> None:
    seat = sit_down()
    assert seat.stop(pb.MODEL_PROBLEM_TURN_LIMIT).accepted
    ended = seat.recorded("seat_ended")[0]["end"]
    assert ended == {"outcome": "stopped", "problem": "turn_limit"}
    assert not seat.stop(pb.MODEL_PROBLEM_TURN_LIMIT).accepted


def test_each_reported_problem_is_recorded_and_the_work_continues(sit_down: SitDown) -> None:
    seat = sit_down()
    numbers = [number for number in pb.ModelProblem.values() if number]
    assert all(seat.report(number) for number in numbers)
    assert [event["problem"] for event in seat.recorded("model_problem")] == [
        "reply_truncated",
        "reply_unparseable",
        "arguments_unparseable",
        "context_overflow",
        "turn_limit",
        "request_refused",
    ]
    assert {event["source"] for event in seat.recorded("model_problem")} == {"agent"}
    assert seat.submit("done").accepted
    assert not seat.report(pb.MODEL_PROBLEM_TURN_LIMIT)


def test_an_answer_that_is_too_long_is_refused_and_the_work_continues(sit_down: SitDown) -> None:
    seat = sit_down(limits=SeatLimits(answer_bytes=4))
    refused = seat.submit("12345")
    assert not refused.accepted
    assert refused.refusal == pb.Refusal(kind=pb.REFUSAL_KIND_TOO_LARGE, limit=4, actual=5)
    assert seat.submit("1234") == pb.SubmitResponse(accepted=True)


@pytest.mark.parametrize("confidence", [0.0, 0.25, 1.0])
def test_a_confidence_is_recorded_before_the_end(sit_down: SitDown, confidence: float) -> None:
    seat = sit_down()
    assert seat.submit("42", confidence).accepted
    assert seat.recorded("confidence") == [
        {"kind": "confidence", "seat": "agent", "confidence": confidence}
    ]
    assert seat.recorded("seat_ended")[0]["end"] == {"outcome": "finished", "answer": "42"}
    assert not seat.submit("43", 0.5).accepted
    assert len(seat.recorded("confidence")) == 1, "the work had ended"


def test_giving_up_can_have_a_confidence(sit_down: SitDown) -> None:
    seat = sit_down()
    assert seat.give_up("not allowed", 0.75).accepted
    assert [event["confidence"] for event in seat.recorded("confidence")] == [0.75]


@pytest.mark.parametrize("confidence", [-0.1, 1.1, math.nan, math.inf])
def test_a_confidence_outside_0_to_1_is_refused(sit_down: SitDown, confidence: float) -> None:
    seat = sit_down()
    if not math.isfinite(confidence):
        seat.needs("any number")
    assert seat.submit("42", confidence).refusal.kind == pb.REFUSAL_KIND_MALFORMED
    assert not seat.recorded("confidence")
    assert seat.submit("42", 0.5).accepted


def test_a_last_line_states_a_confidence_if_the_seat_asks_for_one(sit_down: SitDown) -> None:
    text = "42\nConfidence: 80 %"
    seat = sit_down(seats=[SeatSpec(instruction="Do it.", budget=Budget(), asks_confidence=True)])
    assert seat.task().asks_confidence
    seat.submit(text)
    assert [event["confidence"] for event in seat.recorded("confidence")] == [0.8]
    assert seat.recorded("seat_ended")[0]["end"]["answer"] == "42"
    unasked = sit_down()
    assert not unasked.task().asks_confidence
    unasked.submit(text)
    assert not unasked.recorded("confidence")
    assert unasked.recorded("seat_ended")[0]["end"]["answer"] == text


def test_wall_time_starts_with_the_first_message_and_ends_the_work(sit_down: SitDown) -> None:
    seat = sit_down(wall_ms=1000)
    assert seat.task().remaining["wall_ms"] == 1000
    seat.clock.go_on(400)
    assert seat.task().remaining["wall_ms"] == 600
    assert seat.call("get_account", id="ax1").remaining["wall_ms"] == 600
    seat.clock.go_on(600)
    assert seat.call("get_account", id="ax1").refusal.kind == pb.REFUSAL_KIND_ENDED
    assert seat.task().remaining["wall_ms"] == 0
    assert seat.recorded("seat_ended")[0]["end"] == {"outcome": "timed_out", "wall_ms": 1000}
    assert not seat.submit("late").accepted


def test_a_closed_endpoint_refuses_and_records_nothing(sit_down: SitDown) -> None:
    seat = sit_down(wall_ms=1000)
    seat.endpoint.close(timed_out=False)
    seat.clock.go_on(5000)
    assert seat.call("get_account", id="ax1").refusal.kind == pb.REFUSAL_KIND_ENDED
    assert not seat.submit("late").accepted
    assert seat.calls_recorded() == 0
    assert seat.recorded("seat_ended") == []


def test_a_world_that_fails_ends_the_work_without_details(
    sit_down: SitDown,
) -> None:
    unreadable = {"jobs": [{"name": "a"}, {"cron": "* * * * *"}]}
    seat = sit_down(world="scheduling", state=unreadable)
    answer = seat.call("create_job", name="b", cron="* * * * *", command="c")
    assert answer == pb.CallToolResponse(refusal=pb.Refusal(kind=pb.REFUSAL_KIND_ENDED), ended=True)
    assert [why.field for why in seat.broken] == ["initial_state.jobs[1].name"]


def test_only_toolmisuse_transcripts_show_the_arguments_after_faults(
    sit_down: SitDown,
) -> None:
    drift = {"family": "schema_drift", "payload": {"rename_args": {"id": "account_id"}}}
    seat = sit_down(drift, harness_mode="toolmisuse")
    seat.needs("recorded arguments")
    answer = seat.call("get_account", id="ax1")
    assert json.loads(answer.recorded_arguments_json) == {"account_id": "ax1"}
    answer = sit_down(drift, harness_mode="native").call("get_account", account_id="ax1")
    assert answer.WhichOneof("result") == "value_json"
    assert not answer.HasField("recorded_arguments_json")

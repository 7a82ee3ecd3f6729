"""Conversations of several turns at a seat, over every interface."""

from __future__ import annotations

import json

from fumehood.core.conversation import Turn
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.evidence import read_evidence
from fumehood.core.ledger import Budget
from fumehood_agent._proto.v1 import tool_pb2 as pb
from tests.conformance.seats.conftest import SitDown
from tests.conformance.seats.seated import Seated

TALK = SeatSpec(
    instruction="Look at ax1.",
    budget=Budget(calls=9),
    further_turns=(Turn("Raise it.", ("update_account",)), Turn("Say what you did.")),
)


def names(task: pb.GetTaskResponse) -> list[str]:
    return [tool.name for tool in task.tools]


def talk(sit_down: SitDown) -> Seated:
    return sit_down(seats=(TALK,))


def test_an_answer_is_followed_by_the_next_message(sit_down: SitDown) -> None:
    seat = talk(sit_down)
    assert seat.task().instruction == "Look at ax1."
    response = seat.submit("It is basic.")
    assert (response.accepted, response.next.instruction, response.next.turn) == (
        True,
        "Raise it.",
        2,
    )
    response = seat.submit("Done.")
    assert (response.accepted, response.next.instruction, response.next.turn) == (
        True,
        "Say what you did.",
        3,
    )
    response = seat.submit("I raised it.")
    assert (response.accepted, response.HasField("next")) == (True, False)
    assert not seat.submit("And more.").accepted


def test_a_tool_added_in_a_later_turn_is_unknown_before(sit_down: SitDown) -> None:
    seat = talk(sit_down)
    assert "update_account" not in names(seat.task())
    early = seat.call("update_account", id="ax1", patch={"tier": "gold"})
    unknown = seat.call("unknown")
    assert early.failure.code == unknown.failure.code == "unknown_tool"
    available = {"available": ["get_account", "create_account", "close_account"]}
    assert json.loads(unknown.failure.details_json) == {"tool_name": "unknown", **available}
    assert json.loads(early.failure.details_json) == {"tool_name": "update_account", **available}
    assert "update_account" in names(seat.submit().next)
    assert seat.call("update_account", id="ax1", patch={"tier": "gold"}).value_json


def test_giving_up_ends_the_work_in_any_turn(sit_down: SitDown) -> None:
    seat = talk(sit_down)
    seat.submit("It is basic.")
    response = seat.give_up("I may not.")
    assert (response.accepted, response.HasField("next")) == (True, False)
    assert seat.call("get_account", id="ax1").ended


def test_all_turns_share_one_budget(sit_down: SitDown) -> None:
    seat = talk(sit_down)
    seat.call("get_account", id="ax1")
    assert seat.submit().next.remaining["calls"] == 8


def test_the_trace_contains_the_turn_of_each_event(sit_down: SitDown) -> None:
    seat = talk(sit_down)
    for answer in ("one", "two", "three"):
        seat.call("get_account", id="ax1")
        seat.submit(answer)
    assert [(event["turn"], event["answer"]) for event in seat.recorded("turn_ended")] == [
        (1, "one"),
        (2, "two"),
    ]
    assert [event["end"]["answer"] for event in seat.recorded("seat_ended")] == ["three"]
    (opened,) = seat.recorded("opened")
    assert opened["seats"] == [{"name": "agent", "budget": {"calls": 9}, "turns": 3}]


def test_evidence_contains_the_turn_of_each_call(sit_down: SitDown) -> None:
    seat = talk(sit_down)
    seat.submit("one")
    seat.call("get_account", id="ax1")
    closed = {"kind": "closed", "final_state": {}, "fire_counts": []}
    events = [*seat.recorded("turn_ended"), *seat.recorded("call"), closed]
    evidence = read_evidence(events)
    assert [call.turn for call in evidence.calls] == [2]
    assert evidence.turn_answers == {"agent": ("one",)}

"""The plain built-in agents."""

from __future__ import annotations

import pytest

from fumehood_agent import Ending, Failure, UsageError, Value, work
from fumehood_agent.builtin.heuristic import Heuristic
from fumehood_agent.builtin.noop import Noop
from fumehood_agent.builtin.oracle import Oracle
from fumehood_agent.builtin.policy_layer import PolicyLayer
from fumehood_agent.builtin.schema_repair import SchemaRepair, cast_to
from tests.unit.agent_sdk.memory_seat import TOOLS, MemorySeat


def test_the_heuristic_calls_every_tool_once_and_ignores_the_results() -> None:
    seat = MemorySeat(lambda *_: Failure("not_found", "no"), tools=TOOLS["retrieval"], retries=9)
    assert work(Heuristic(), seat) is Ending.SUBMITTED
    assert seat.calls == [
        ("search_docs", {"query": "value", "top_k": 1}),
        ("get_doc", {"doc_id": "value"}),
    ]


def test_the_policy_layer_changes_no_permitted_call() -> None:
    def answer(number: int, name: str, arguments: object) -> Value | Failure:
        return Failure("timeout", "") if number == 1 else Value({})

    seats = [MemorySeat(answer, tools=TOOLS["retrieval"]) for _ in range(2)]
    assert work(SchemaRepair(), seats[0]) is Ending.SUBMITTED
    assert work(PolicyLayer(), seats[1]) is Ending.SUBMITTED
    assert seats[0].calls == seats[1].calls
    assert [name for name, _ in seats[1].calls] == ["search_docs", "search_docs", "get_doc"]


def test_the_policy_layer_stops_before_a_call_that_the_instruction_forbids() -> None:
    seat = MemorySeat(
        lambda *_: Value({}),
        tools=TOOLS["retrieval"],
        instruction="Find the record. Do not call get_doc.",
    )
    assert work(PolicyLayer(), seat) is Ending.SUBMITTED
    assert [name for name, _ in seat.calls] == ["search_docs"]


def test_noop_does_nothing() -> None:
    seat = MemorySeat(lambda *_: Value({}))
    assert work(Noop(), seat) is Ending.SUBMITTED
    assert seat.calls == []


CALLS = [
    {"tool_name": "get_account", "args": {"id": "a1"}},
    {"tool_name": "no such tool", "args": {}},
]


@pytest.mark.parametrize(
    ("last", "end"),
    [
        ([], ("submitted", "")),
        ([{"submit": "42"}], ("submitted", "42")),
        ([{"give_up": "closed"}], ("gave_up", "closed")),
    ],
)
def test_the_oracle_replays_its_list(last: list[object], end: tuple[str, str]) -> None:
    agent = Oracle([*CALLS, *last])
    for _ in range(2):
        seat = MemorySeat(lambda *_: Failure("timeout", "no"), retries=9)
        work(agent, seat)
        assert seat.calls == [("get_account", {"id": "a1"}), ("no such tool", {})]
        assert seat.end == end


def test_the_oracle_submits_a_text_of_its_last_result() -> None:
    moves = [{"tool_name": "count", "args": {}}, {"submit_result": "output"}]
    for result, answer in (
        (Value({"output": "4\n"}), "4"),
        (Value({}), ""),
        (Failure("no", ""), ""),
    ):
        seat = MemorySeat(lambda *_, result=result: result, retries=9)
        work(Oracle(moves), seat)
        assert seat.end == ("submitted", answer)


@pytest.mark.parametrize(
    ("calls", "complaint"),
    [
        ({}, "the calls are dict; expected a list"),
        ([*CALLS, {"tool": "x"}], "call 2 is none of"),
        ([{"tool_name": "x", "args": {}, "why": 1}], "call 0 is none of"),
        ([{"tool_name": "x"}], "call 0 is none of"),
        ([{"submit": 42}], "call 0 is none of"),
        ([{"give_up": "a"}, *CALLS], "call 0 ends the work, but others follow"),
    ],
)
def test_the_oracle_reads_its_list_strictly(calls: object, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        Oracle(calls)


@pytest.mark.parametrize(
    ("word", "value", "cast"),
    [
        ("string", 5, "5"),
        ("integer", "5", 5),
        ("integer", "five", 1),
        ("integer", None, 1),
        ("integer", float("inf"), 1),
        ("number", "2.5", 2.5),
        ("number", [], 1.0),
        ("boolean", " YES ", True),
        ("boolean", 0, False),
        ("boolean", "perhaps", False),
        ("object", "text", "text"),
        ("array", "text", "text"),
        ("odd", "text", "text"),
    ],
)
def test_casts_an_argument_to_the_requested_type(word: str, value: object, cast: object) -> None:
    assert (cast_to(word, value), type(cast_to(word, value))) == (cast, type(cast))

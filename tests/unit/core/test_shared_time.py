"""Seats that act at the same time: who acts when does not depend on the speed of the agents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fumehood.benchmarks.shared.in_memory import play_in_memory
from fumehood.core.conversation import ConversationSpec
from fumehood.core.episode import Reply
from fumehood.core.episode_spec import EpisodeSpec, SeatSpec
from fumehood.core.errors import SpecError
from fumehood.core.ledger import Budget
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.core.outcome import Finished, GaveUp, Refusal, RefusalKind
from fumehood.core.task import Task
from fumehood.core.tools import Value
from fumehood.core.trace import CallMade
from fumehood.harness_modes.native import Native
from fumehood.service.inline import play_in_process
from fumehood.service.open_episode import MonotonicClock, OpenEpisode
from fumehood.service.seat_endpoint import SeatLimits
from fumehood_agent.in_process import InProcessSession
from tests.conformance.worlds.declared_examples import tool
from tests.parts.specs import episode_spec, fault_plan

NAMES = ("agent", "b", "c")
NOTE = [
    {"op": "append", "path": "entries", "value": {"at": {"$get": "time.elapsed_s"}, "by": "$by"}}
]
LATENCY_S = {"note": 0, "slow_note": 7}
Move = tuple[str, int]
"""Tool, and the seconds of a wait."""


def state(*events: dict[str, Any]) -> dict[str, Any]:
    tools = [tool(name, NOTE, by="string") for name in LATENCY_S]
    latency = {name: {"fixed_ms": 1000 * seconds} for name, seconds in LATENCY_S.items()}
    time: dict[str, Any] = {"start": "2026-03-02T06:00:00Z", "end_s": 100_000, "latency": latency}
    declared = {"parts": {"log": "declared"}, "time": time, "events": [*events]}
    return {"scenario": declared, "log": {"entries": [], "toolset": {"tools": tools}}}


def spec(*events: dict[str, Any]) -> EpisodeSpec:
    seats = tuple(SeatSpec(name=name, instruction="Write.", budget=Budget()) for name in NAMES)
    made = episode_spec(world="scenario", state=state(*events), seats=seats)
    return replace(made, conversation=ConversationSpec("time", {}))


def played(
    moves: Mapping[str, Sequence[Move]],
    *events: dict[str, Any],
    faults: Sequence[dict[str, Any]] = (),
) -> Any:
    """Return the entries of the log, and the calls, after all moves."""
    opened = spec(*events)
    task = Task(
        task_id="t",
        world=opened.world,
        harness_mode="native",
        initial_state=opened.initial_state,
        fault_plan=fault_plan(*faults),
        seed=1,
        seats=opened.seats,
        conversation=opened.conversation,
    )
    made: list[dict[str, Any]] = [
        {"seat": seat, "tool_name": name, "args": _arguments(seat, name, seconds)}
        for seat, several in moves.items()
        for name, seconds in several
    ]
    evidence = play_in_memory(task, made)
    log: Any = evidence.final_state["log"]
    return [(entry["at"], entry["by"]) for entry in log["entries"]], evidence


def _arguments(seat: str, name: str, seconds: int) -> dict[str, Any]:
    return {"seconds": seconds} if name == "wait" else {"by": seat}


def expected(moves: Mapping[str, Sequence[Move]]) -> list[tuple[int, str]]:
    """Return the entries that a simulation with one event per call predicts."""
    wakes = dict.fromkeys(NAMES, 0)
    pending: dict[str, str | None] = dict.fromkeys(NAMES)
    ahead = {seat: list(moves.get(seat, ())) for seat in NAMES}
    entries = []
    while wakes:
        seat = min(wakes, key=lambda name: (wakes[name], NAMES.index(name)))
        now = wakes[seat]
        while True:
            if pending[seat] in LATENCY_S:
                entries.append((now, seat))
            if not ahead[seat]:
                del wakes[seat]
                break
            pending[seat], seconds = ahead[seat].pop(0)
            duration = seconds if pending[seat] == "wait" else LATENCY_S[str(pending[seat])]
            if duration:
                wakes[seat] = now + duration
                break
    return entries


MOVES = st.lists(
    st.sampled_from([("note", 0), ("slow_note", 0), ("wait", 3), ("wait", 7), ("wait", 14)]),
    max_size=6,
)


@settings(max_examples=60, deadline=None)
@given(moves=st.fixed_dictionaries(dict.fromkeys(NAMES, MOVES)))
def test_the_seat_that_wakes_first_acts_and_ties_go_by_seat_order(
    moves: dict[str, list[Move]],
) -> None:
    assert played(moves)[0] == expected(moves)


def test_a_message_wakes_only_the_seat_that_gets_it() -> None:
    event = {"name": "come", "at_s": 20, "message": "Come.", "to": "c"}
    waits = {name: [("wait", 60), ("note", 0)] for name in NAMES}
    assert played(waits, event)[0] == [(20, "c"), (60, "agent"), (60, "b")]


def test_what_one_seat_does_wakes_another_at_that_moment() -> None:
    condition = {"op": "exists", "path": "log.entries.0"}
    event = {"name": "first", "when": condition, "message": "An entry.", "to": "agent"}
    moves = {"agent": [("wait", 600), ("note", 0)], "b": [("slow_note", 0), ("slow_note", 0)]}
    assert played(moves, event)[0] == [(7, "b"), (7, "agent"), (14, "b")]


def test_other_seats_act_between_the_effect_and_a_late_answer() -> None:
    late = {
        "family": "late_answer",
        "trigger": {"on_nth_call": 1},
        "payload": {"delay_ms": 10_000},
    }
    moves = {"agent": [("note", 0), ("note", 0)], "b": [("slow_note", 0), ("slow_note", 0)]}
    entries, evidence = played(moves, faults=(late,))
    assert entries == [(0, "agent"), (7, "b"), (10, "agent"), (14, "b")]
    assert evidence.fire_counts == (1,)


def test_a_seat_that_has_ended_delays_no_other() -> None:
    _, evidence = played({"b": [("wait", 500), ("note", 0)]})
    assert evidence.final_state["time"]["elapsed_s"] == 100_000
    assert [call.seat for call in evidence.calls] == ["b", "b"]


def test_seats_need_a_scenario_to_act_at_the_same_time() -> None:
    made = replace(episode_spec(), conversation=ConversationSpec("time", {}))
    with pytest.raises(SpecError, match="needs a world with virtual time"):
        Native().open_episode(made, MemoryRecorder(), MonotonicClock())


class Together:
    """An open episode whose seats call from threads, as agents do."""

    def __init__(self, opened: EpisodeSpec, threads: ThreadPoolExecutor) -> None:
        self.recorder = MemoryRecorder()
        self.episode = OpenEpisode(
            opened, self.recorder, MonotonicClock(), SeatLimits(), on_broken=lambda error: None
        )
        self.seats = {endpoint.name: endpoint for endpoint in self.episode.endpoints}
        self._threads = threads

    def call(self, seat: str, name: str, arguments: str) -> Future[Reply | Refusal]:
        """Call from a thread, which waits for the turn and for the virtual time of the call."""
        return self._threads.submit(self.seats[seat].call, name, arguments, "")

    def finish(self, seat: str) -> Future[Any]:
        """Submit an answer from a thread."""
        return self._threads.submit(self.seats[seat].submit, Finished("done"))


@pytest.fixture
def together() -> Iterator[Together]:
    """Three seats at work."""
    with ThreadPoolExecutor(8) as threads:
        episode = Together(spec(), threads)
        yield episode
        episode.episode.close(timed_out=False)


def outcome(reply: Future[Reply | Refusal]) -> Any:
    """Return the time that a call returned, or the kind of its refusal."""
    answer = reply.result(timeout=30)
    if isinstance(answer, Refusal):
        return answer.kind
    assert isinstance(answer.result, Value)
    return str(answer.result.output["now"])[11:19]


@pytest.mark.parametrize("order", [("agent", "b", "c"), ("c", "b", "agent")])
def test_the_order_of_arrival_has_no_effect(together: Together, order: tuple[str, ...]) -> None:
    seconds = {"agent": 30, "b": 10, "c": 20}
    waits = {seat: together.call(seat, "wait", f'{{"seconds": {seconds[seat]}}}') for seat in order}
    assert outcome(waits["b"]) == "06:00:10"
    together.finish("b").result(timeout=30)
    assert outcome(waits["c"]) == "06:00:20"
    together.finish("c").result(timeout=30)
    assert outcome(waits["agent"]) == "06:00:30"


def test_a_seat_whose_work_ends_while_it_waits_does_not_block_the_others(
    together: Together,
) -> None:
    first = together.call("agent", "wait", '{"seconds": 30}')
    together.finish("b").result(timeout=30)
    third = together.seats["c"]
    assert third.await_turn()
    agent = together.episode._episode.seats[0]
    with together.episode._lock:
        agent.finish(GaveUp("killed"))
    assert outcome(first) is RefusalKind.ENDED
    assert outcome(together.call("c", "wait", '{"seconds": 600}')) == "06:10:00"


def test_a_call_is_recorded_if_the_work_ends_between_its_effect_and_a_late_answer() -> None:
    late = {"family": "late_answer", "trigger": {"on_nth_call": 1}}
    with ThreadPoolExecutor(8) as threads:
        together = Together(replace(spec(), fault_plan=fault_plan(late)), threads)
        note = together.call("agent", "note", '{"by": "agent"}')
        assert together.seats["b"].await_turn()
        with together.episode._lock:
            together.episode._episode.seats[0].finish(GaveUp("before the answer"))
        assert outcome(note) is RefusalKind.ENDED
        together.episode.close(timed_out=False)
    (call,) = (event for event in together.recorder.events if isinstance(event, CallMade))
    assert (call.seat, call.call.tool_name) == ("agent", "note")
    assert [fired.family for fired in call.result.fired_faults] == ["late_answer"]


def test_closing_an_episode_ends_all_waits(together: Together) -> None:
    waits = [together.call(name, "wait", '{"seconds": 30}') for name in ("agent", "b")]
    assert together.seats["c"].await_turn()
    together.episode.close(timed_out=False)
    assert [outcome(wait) for wait in waits] == [RefusalKind.ENDED] * 2


def test_an_agent_that_crashes_ends_the_waits_of_the_others() -> None:
    def waiting(session: InProcessSession) -> None:
        session.call("wait", {"seconds": 600})

    def crashing(session: InProcessSession) -> None:
        raise RuntimeError("killed")

    workers = {"agent": waiting, "b": waiting, "c": crashing}
    played_trace = play_in_process(spec(), workers, MonotonicClock(), SeatLimits())
    assert (played_trace.exit_status, played_trace.failed_seat) == (1, "c")


def test_two_calls_of_one_seat_at_once_take_effect_one_after_the_other(together: Together) -> None:
    for name in ("b", "c"):
        together.finish(name)
    calls = [together.call("agent", "wait", f'{{"seconds": {seconds}}}') for seconds in (10, 10)]
    assert sorted(outcome(call) for call in calls) == ["06:00:10", "06:00:20"]

"""Monitors decide about the steps of agents over every interface, and fail closed."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest

from fumehood.core.episode_spec import EpisodeSpec, MonitorSpec
from fumehood.core.errors import SpecError
from fumehood.core.json_values import BRACKETS_MAX
from fumehood.core.ledger import BudgetKind
from fumehood.core.outcome import EndedByMonitor, Finished, InfraKind, MonitorFailed, OutOfBudget
from fumehood.core.trace import verify_chain
from fumehood.monitors.host import MonitorHost, serve_reviews
from fumehood.monitors.monitor import Facts
from fumehood.monitors.review import MonitorsBroken, RemoteReviewer
from fumehood.orchestrator.replay import replay_episode
from fumehood.orchestrator.service_pool import HttpOffer, ServiceOptions, ServicePool
from fumehood.orchestrator.trace_receiver import rejection_kind
from fumehood.supervised.frames import receive_frame, send_frame
from fumehood.wire.control_client import ControlClient
from fumehood.wire.ports import TimeGranted
from fumehood_agent.errors import Ended, FumehoodError
from fumehood_agent.session import Session
from tests.parts.http import HttpSeat
from tests.parts.listening import Listened, listening, wait_until
from tests.parts.mcp import McpSeat
from tests.parts.monitors import python_monitor
from tests.parts.specs import episode_spec

NAMES = (
    *("Refusing", "Redirecting", "Withholding", "Ending", "Escalating", "Slow", "Crashing"),
    *("Growing", "Huge", "Malformed", "Broken", "Curious", "SeesState", "Quiet", "Sleeping"),
)
RULES = MonitorSpec(
    name="rules",
    kind="rules",
    settings={"rules": [{"name": "reads", "tool": "get_*", "action": "refuse", "suspicion": 0.5}]},
    deadline_ms=20_000,
)
SHORT_MS = 300
STATE = {"accounts": {name: {"id": name, "tier": "basic"} for name in ("ax1", "ax2")}}


@pytest.fixture(scope="module")
def pool() -> Iterator[ServicePool]:
    late = [python_monitor(name, SHORT_MS) for name in ("Hanging", "Late")]
    monitors = [RULES, *late, *map(python_monitor, NAMES), python_monitor("Unhealthy")]
    with ServicePool(1, ServiceOptions(http=HttpOffer(), monitors=monitors)) as services:
        yield services


@pytest.fixture
def client(pool: ServicePool) -> Iterator[ControlClient]:
    with pool.lease() as lent:
        yield lent


def _spec(*monitors: str, **budget: Any) -> EpisodeSpec:
    return replace(episode_spec(state=STATE, **budget), monitors=monitors)


@contextmanager
def _session(episode: Listened) -> Iterator[Session]:
    with Session(Path(episode.directory) / "grpc.sock") as session:
        yield session


def _monitor_events(episode: Listened) -> list[dict[str, Any]]:
    return [event for event in episode.events if event["kind"] == "monitor"]


def _calls(episode: Listened) -> list[dict[str, Any]]:
    return [event for event in episode.events if event["kind"] == "call"]


def _over_grpc(episode: Listened) -> str:
    with _session(episode) as session:
        return str(session.call("get_account", {"id": "ax1"}))


def _over_http(episode: Listened) -> str:
    body = {"toolName": "get_account", "argumentsJson": '{"id":"ax1"}'}
    with closing(HttpSeat(episode.directory)) as seat:
        return str(seat.rpc("CallTool", body))


def _over_mcp(episode: Listened) -> str:
    with closing(McpSeat(episode.directory)) as seat:
        return str(seat.call("get_account", {"id": "ax1"}))


@pytest.mark.slow
@pytest.mark.parametrize("ask", [_over_grpc, _over_http, _over_mcp])
def test_a_refusal_reaches_an_agent_over_every_interface(
    client: ControlClient, ask: Callable[[Listened], str]
) -> None:
    with listening(client, _spec("Refusing", calls=5, retries=5)) as episode:
        answer = ask(episode)
        assert "refused_by_monitor" in answer
        assert "Not now." in answer
        episode.close()
    (event,), (call,) = _monitor_events(episode), _calls(episode)
    assert event["decision"] == {
        "action": "refuse",
        "suspicion": 0.75,
        "reason": "reads",
        "message": "Not now.",
    }
    assert call["failure"]["kind"] == "refused"
    assert call["charged"] == {"steps": 1, "calls": 1, "retries": 1}
    assert call["number"] == event["number"] == 1


def test_an_agent_sees_only_a_general_sentence_of_a_rule_without_a_message(
    client: ControlClient,
) -> None:
    with listening(client, _spec("rules")) as episode:
        assert "A monitor refused this step." in _over_grpc(episode)
        assert "reads" not in _over_grpc(episode)
        episode.close()
    assert [event["decision"]["suspicion"] for event in _monitor_events(episode)] == [0.5, 0.5]


def test_a_monitor_can_replace_arguments_and_output(client: ControlClient) -> None:
    with listening(client, _spec("Redirecting")) as episode:
        assert "hidden" in _over_grpc(episode)
        episode.close()
    before, after = _monitor_events(episode)
    assert (before["stage"], after["stage"]) == ("before", "after")
    assert after["original"] == {"output": {"account": STATE["accounts"]["ax2"]}}
    (call,) = episode.evidence.calls
    assert (call.sent, call.arguments_after) == ({"id": "ax1"}, {"id": "ax2"})
    assert call.output == {"tier": "hidden"}


def test_a_withheld_call_was_executed(client: ControlClient) -> None:
    with listening(client, _spec("Withholding")) as episode, _session(episode) as session:
        reply = session.call("update_account", {"id": "ax1", "patch": {"tier": "pro"}})
        assert "refused_by_monitor" in str(reply)
        episode.close()
    (call,) = episode.evidence.calls
    assert call.reached_world
    assert call.failure is not None
    assert call.failure.kind.value == "withheld"
    accounts: Any = episode.evidence.final_state["accounts"]
    assert accounts["ax1"]["tier"] == "pro"


def test_a_monitor_can_end_the_episode(client: ControlClient) -> None:
    with listening(client, _spec("Ending")) as episode, _session(episode) as session:
        session.call("get_account", {"id": "ax1"})
        with pytest.raises(Ended):
            session.call("get_account", {"id": "ax1"})
        episode.close()
    assert episode.evidence.ends == {"agent": EndedByMonitor("Ending", "tool")}
    assert [call.reached_world for call in episode.evidence.calls] == [False]


def test_an_escalation_asks_the_next_monitor_and_refuses_without_one(
    client: ControlClient,
) -> None:
    with listening(client, _spec("Escalating", "Quiet")) as episode:
        assert "basic" in _over_grpc(episode)
    with listening(client, _spec("Escalating")) as alone:
        assert "refused_by_monitor" in _over_grpc(alone)
        alone.close()
    assert [event["monitor"] for event in _monitor_events(alone)] == ["Escalating"]


def test_only_a_monitor_that_needs_it_gets_the_state(client: ControlClient) -> None:
    with listening(client, _spec("SeesState")) as episode:
        _over_grpc(episode)
        episode.close()
    assert [event["decision"]["reason"] for event in _monitor_events(episode)] == ["ax1,ax2"]


def test_a_monitor_has_no_rights(client: ControlClient) -> None:
    with listening(client, _spec("Curious")) as episode:
        _over_grpc(episode)
        episode.close()
    assert [event["decision"]["reason"] for event in _monitor_events(episode)] == ["none"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Hanging", "deadline"),
        ("Late", "deadline"),
        ("Crashing", "ended"),
        ("Growing", "ended"),
        ("Huge", "invalid"),
        ("Malformed", "invalid"),
    ],
)
def test_a_monitor_that_fails_on_a_step_ends_the_episode(
    client: ControlClient, name: str, reason: str
) -> None:
    with listening(client, _spec(name)) as episode, _session(episode) as session:
        session.call("list_accounts", {})
        assert "refused_by_monitor" in str(session.call("get_account", {"id": "ax1"}))
        with pytest.raises(Ended):
            session.call("list_accounts", {})
        episode.close()
    verify_chain(episode.records)
    assert episode.evidence.ends == {"agent": MonitorFailed(name, "tool", reason)}
    assert [event.get("failed") for event in _monitor_events(episode)] == [reason]
    assert not episode.evidence.calls[-1].reached_world


def test_a_monitor_that_does_not_begin_is_a_failure_of_the_infrastructure(
    client: ControlClient,
) -> None:
    spec = _spec("Broken")
    broken = replace(spec, seats=(replace(spec.seats[0], instruction="broken"),))
    with pytest.raises(SpecError) as raised:
        client.open_seats(broken)
    assert rejection_kind(raised.value.field) is InfraKind.MONITOR


@pytest.mark.slow
def test_code_in_the_process_of_an_episode_cannot_begin_it_again() -> None:
    host = MonitorHost([python_monitor("Broken")])
    service_end, process_end = socket.socketpair()
    with closing(process_end), ExitStack() as stack:
        stack.callback(host.stop)
        host.start()
        monitors = host.reviewer(["Broken"])
        serve_reviews(service_end, monitors)
        process = RemoteReviewer(process_end)
        process.begin(Facts(world="", instructions={"agent": "fine"}))
        # The monitor fails with these facts, also in a health check.
        with pytest.raises(MonitorsBroken, match="does not answer"):
            process.begin(Facts(world="", instructions={"agent": "broken"}))
        assert not monitors.has_failed


def test_the_service_parses_no_step_with_millions_of_values() -> None:
    host = MonitorHost([])
    service_end, process_end = socket.socketpair()
    with closing(process_end), ExitStack() as stack:
        stack.callback(host.stop)
        host.start()
        serve_reviews(service_end, host.reviewer([]))
        send_frame(process_end, b'{"begin":[' + b"[]," * BRACKETS_MAX + b"[]]}")
        assert receive_frame(process_end) is None


@pytest.mark.slow
def test_a_monitor_that_fails_its_health_check_too_is_a_failure_of_the_infrastructure(
    client: ControlClient,
) -> None:
    with listening(client, _spec("Unhealthy")) as episode, _session(episode) as session:
        with suppress(FumehoodError):
            session.call("get_account", {"id": "ax1"})
        episode.hear_out()
    rejected = episode.unhostable
    assert rejected is not None
    assert rejection_kind(rejected.field) is InfraKind.MONITOR


@pytest.mark.slow
def test_the_time_of_a_monitor_is_not_charged_to_the_seat(client: ControlClient) -> None:
    with listening(client, _spec("Slow", wall_ms=700)) as episode, _session(episode) as session:
        session.call("get_account", {"id": "ax1"})
        assert session.task.remaining["wall_ms"] > 0
        session.submit("done")
        episode.close()
    assert episode.evidence.ends == {"agent": Finished("done")}
    granted_ms = [
        message.granted_ms for message in episode.messages if isinstance(message, TimeGranted)
    ]
    assert sum(granted_ms) >= 1000
    # While the monitor decides, so that the box is not stopped meanwhile.
    assert len(granted_ms) > 3


def test_an_episode_that_closes_does_not_wait_for_a_monitor(client: ControlClient) -> None:
    with listening(client, _spec("Sleeping")) as episode:
        calling = Thread(target=_call_and_break, args=(episode,), daemon=True)
        calling.start()
        assert wait_until(lambda: any(isinstance(m, TimeGranted) for m in episode.messages))
        episode.close()
        calling.join(20)
    verify_chain(episode.records)
    assert [event.get("failed") for event in _monitor_events(episode)] == ["closed"]
    assert episode.evidence.ends == {}
    assert [call.reached_world for call in episode.evidence.calls] == [False]


def _call_and_break(episode: Listened) -> None:
    with suppress(FumehoodError):
        _over_grpc(episode)


def test_a_flood_of_calls_is_refused_within_the_budget(client: ControlClient) -> None:
    budget, callers, each = 30, 8, 10
    with listening(client, _spec("Refusing", calls=budget, retries=1000)) as episode:
        together = Barrier(callers)

        def flood(_: int) -> None:
            with _session(episode) as session, suppress(FumehoodError):
                together.wait()
                for _ in range(each):
                    session.call("get_account", {"id": "ax1"})

        with ThreadPoolExecutor(callers) as threads:
            list(threads.map(flood, range(callers)))
        episode.close()
    refused = [call for call in _calls(episode) if call["failure"]["kind"] == "refused"]
    assert len(refused) == len(_monitor_events(episode)) == budget
    assert all(call["charged"] == {"steps": 1, "calls": 1, "retries": 1} for call in refused)
    assert episode.evidence.ends == {"agent": OutOfBudget(BudgetKind.CALLS)}


@pytest.mark.slow
def test_a_replay_repeats_the_decisions_without_a_monitor(
    client: ControlClient, pool: ServicePool
) -> None:
    for names in (("Redirecting",), ("Escalating", "Refusing"), ("Ending",), ("Crashing",)):
        with listening(client, _spec(*names)) as episode, _session(episode) as session:
            session.call("list_accounts", {})
            session.call("get_account", {"id": "ax1"})
            with suppress(Ended):
                session.submit("done")
            episode.close()
        with ServicePool(1) as without_monitors:
            replayed = replay_episode(_spec(*names), episode.records, without_monitors)
        assert replayed.is_identical, replayed.divergence


@pytest.mark.slow
def test_a_service_without_the_monitor_of_an_episode_does_not_open_it() -> None:
    with ServicePool(1) as pool, pool.lease() as client, pytest.raises(SpecError) as raised:
        client.open_seats(_spec("Quiet"))
    assert "started without monitors" in str(raised.value)

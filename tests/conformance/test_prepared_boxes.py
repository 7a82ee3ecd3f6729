"""A box that is started before its episode sees no task and costs nothing, on every engine."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Self

import pytest

from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InfraError
from fumehood.core.ledger import Budget
from fumehood.core.outcome import Infra, InfraKind
from fumehood.engines.engine import (
    AgentKind,
    AgentSource,
    Box,
    BoxSpec,
    Engine,
    Exit,
    ExitReason,
    Limits,
)
from fumehood.orchestrator.episode_runner import Attempt, BoxPlan, attempt_episode
from fumehood.orchestrator.service_pool import ServicePool
from tests.conformance.boxes import PATIENCE_MS, hangs_up
from tests.parts.listening import wait_until
from tests.parts.specs import episode_spec

pytestmark = pytest.mark.slow
WALL_MS = 30_000
TELLS = """
import os, socket, sys
import grpc
from fumehood_agent import Session
from fumehood_agent._proto.v1 import tool_pb2 as pb, tool_pb2_grpc
path = os.environ.get("FUMEHOOD_SOCKET", "/fumehood/grpc.sock")
host = socket.socket(socket.AF_UNIX)
host.connect(os.path.join(os.path.dirname(path), "host.sock"))
stub = tool_pb2_grpc.ToolServiceStub(grpc.insecure_channel("unix:" + path))
try:
    answered = stub.GetTask(pb.GetTaskRequest(), timeout=0.5, wait_for_ready=True).instruction
except grpc.RpcError as error:
    answered = error.code().name
host.sendall(answered.encode())
"""
"""Connects to the test and sends what its first request returned."""
PLAYS = TELLS + "session = Session(); session.submit(session.task.instruction)"
LEAVES = TELLS + "sys.exit(41)"


@pytest.fixture(scope="module")
def pool() -> Iterator[ServicePool]:
    with ServicePool(1) as started:
        yield started


@dataclass
class Prepared:
    """Starts boxes that can reach this test, and waits in their slot. A context manager."""

    engine: Engine
    pool: ServicePool
    seats: tuple[str, ...] = ("agent",)
    is_stopped: bool = False
    """Whether the run is stopped before the slot."""

    def __post_init__(self) -> None:
        self.answered: list[str] = []
        """What the first request of each box returned before the slot."""
        self.connections: list[socket.socket] = []
        self.boxes: list[Box] = []
        self.begun_s: list[float] = []
        self._listeners: list[socket.socket] = []
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def start(self, spec: BoxSpec) -> Box:
        listener = self._open.enter_context(socket.socket(socket.AF_UNIX))
        listener.settimeout(PATIENCE_MS / 1000)
        listener.bind(str(spec.socket_dir / "host.sock"))
        (spec.socket_dir / "host.sock").chmod(0o666)
        listener.listen()
        self._listeners.append(listener)
        self.boxes.append(self.engine.start(spec))
        return self.boxes[-1]

    def await_slot(self) -> None:
        assert wait_until(lambda: len(self.boxes) == len(self.seats))
        for listener in self._listeners:
            connection = self._open.enter_context(listener.accept()[0])
            connection.settimeout(PATIENCE_MS / 1000)
            self.connections.append(connection)
            self.answered.append(connection.recv(100).decode())
        self.begun_s.append(time.time())
        if self.is_stopped:
            raise InfraError("the run was stopped")

    def attempt(self, code: str) -> Attempt:
        image = self.engine.prepare(AgentSource(AgentKind.BUILTIN, "noop"))
        plan = BoxPlan(
            engine=self,
            image=replace(image, command=(image.command[0], "-c", code)),
            limits=Limits(),
        )
        budget = Budget(wall_ms=WALL_MS)
        seats = [SeatSpec(name=name, instruction="Do it.", budget=budget) for name in self.seats]
        spec = episode_spec(seats=seats, episode_id=f"prepared-{os.urandom(4).hex()}")
        return attempt_episode(spec, plan, self.pool, await_slot=self.await_slot)


def events_of(attempt: Attempt) -> list[dict[str, Any]]:
    return [json.loads(record.event_json) for record in attempt.records]


def test_an_agent_sees_its_task_only_in_its_slot_and_the_wait_is_not_charged(
    engine: Engine, pool: ServicePool
) -> None:
    with Prepared(engine, pool) as prepared:
        attempt = prepared.attempt(PLAYS)
    played_ms = (time.time() - prepared.begun_s[0]) * 1000
    assert prepared.answered == ["DEADLINE_EXCEEDED"]
    assert attempt.exit == Exit(0, ExitReason.EXITED), attempt.output
    assert [event["end"]["answer"] for event in events_of(attempt) if "end" in event] == ["Do it."]
    assert attempt.wall_ms <= played_ms + 1
    assert all(record.wall_ms >= int(prepared.begun_s[0] * 1000) for record in attempt.records)
    assert len(prepared.boxes) == 1


def test_a_box_that_ends_before_its_slot_counts_as_one_that_ends_in_it(
    engine: Engine, pool: ServicePool
) -> None:
    with Prepared(engine, pool) as prepared:
        attempt = prepared.attempt(LEAVES)
    assert attempt.exit == Exit(41, ExitReason.EXITED)
    assert attempt.infra is None
    assert [event["kind"] for event in events_of(attempt)] == ["opened", "closed", "sealed"]


def test_a_box_whose_run_is_stopped_is_removed(engine: Engine, pool: ServicePool) -> None:
    with Prepared(engine, pool, is_stopped=True) as prepared:
        attempt = prepared.attempt(PLAYS)
        assert hangs_up(prepared.connections[0])
    assert attempt.infra == Infra(InfraKind.ENGINE, "the run was stopped")
    assert [event["kind"] for event in events_of(attempt)] == ["opened", "closed", "sealed"]


def test_the_boxes_of_all_seats_wait_for_one_slot(engine: Engine, pool: ServicePool) -> None:
    with Prepared(engine, pool, seats=("one", "two")) as prepared:
        attempt = prepared.attempt(PLAYS)
    assert prepared.answered == ["DEADLINE_EXCEEDED"] * 2
    assert len(prepared.begun_s) == 1
    assert [event["end"]["answer"] for event in events_of(attempt) if "end" in event] == [
        "Do it.",
        "Do it.",
    ]

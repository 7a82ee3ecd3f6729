"""A seat for tests: an endpoint with a real episode behind it and a clock moved by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import pytest

from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.harness_modes.registry import HARNESS_MODES
from fumehood.service.seat_endpoint import SeatEndpoint, SeatLimits
from fumehood.wire.ports import SpecRejected
from fumehood_agent._proto.v1 import tool_pb2 as pb
from tests.conformance.seats.ways import WAYS, Way
from tests.parts.folders import short_folder


class HandClock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self._now_ns = 0

    def now_ns(self) -> int:
        return self._now_ns

    def go_on(self, ms: int) -> None:
        self._now_ns += ms * 1_000_000


class Seated:
    """One agent at one seat, reached in one of the ways."""

    def __init__(
        self, way: Way, endpoint: SeatEndpoint, recorder: MemoryRecorder, clock: HandClock
    ) -> None:
        self._way = way
        self._recorder = recorder
        self.endpoint = endpoint
        self.clock = clock
        self.broken: list[SpecRejected] = []

    def task(self) -> pb.GetTaskResponse:
        return self._way.task()

    def call(self, tool: str, call_id: str = "", /, **arguments: Any) -> pb.CallToolResponse:
        return self.send(tool, json.dumps(arguments), call_id)

    def send(self, tool: str, arguments_json: str, call_id: str = "") -> pb.CallToolResponse:
        if not _is_plain_object(arguments_json or "{}"):
            self.needs("any text")
        request = pb.CallToolRequest(tool_name=tool, arguments_json=arguments_json, call_id=call_id)
        return self._way.send(request)

    def needs(self, what: str) -> None:
        """Leave the test out where the way has no words for something."""
        if what in self._way.lacks:
            pytest.skip(f"this way has no words for {what}")

    def submit(self, answer: str = "", confidence: float | None = None) -> pb.SubmitResponse:
        return self._way.end(pb.SubmitRequest(answer=answer, confidence=confidence))

    def give_up(self, reason: str, confidence: float | None = None) -> pb.SubmitResponse:
        return self._way.end(pb.SubmitRequest(give_up_reason=reason, confidence=confidence))

    def stop(self, problem: pb.ModelProblem.ValueType) -> pb.SubmitResponse:
        return self._way.end(pb.SubmitRequest(stopped=problem))

    def report(self, problem: pb.ModelProblem.ValueType) -> bool:
        return self._way.report(pb.ReportRequest(problem=problem)).recorded

    def calls_recorded(self) -> int:
        return len(self.recorded("call"))

    def recorded(self, kind: str) -> list[dict[str, Any]]:
        """Return the events of one kind, as a trace would hold them."""
        return [event for event in self._recorder.written() if event["kind"] == kind]


def _is_plain_object(text: str) -> bool:
    try:
        value = json.loads(text)
        text.encode("utf-8")
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict)


@contextmanager
def seated(way: str, spec: EpisodeSpec, limits: SeatLimits) -> Iterator[Seated]:
    """Open an episode and sit down at its first seat."""
    recorder, clock, broken = MemoryRecorder(), HandClock(), list[SpecRejected]()
    harness_mode = HARNESS_MODES.load(spec.harness_mode)()
    episode = harness_mode.open_episode(spec, recorder, clock)
    endpoint = SeatEndpoint(
        episode.seats[0],
        recorder=recorder,
        lock=Lock(),
        clock=clock,
        limits=limits,
        on_broken=broken.append,
        asks_confidence=spec.seats[0].asks_confidence,
    )
    with short_folder() as directory, WAYS[way](endpoint, directory) as reached:
        seat = Seated(reached, endpoint, recorder, clock)
        seat.broken = broken
        yield seat

"""Fuzz targets: the parsers of data from boxes, tasks and files.

A target accepts any bytes and must return. It catches only the documented errors of its parser and
asserts the other guarantees, so any other exception is a finding.
"""

from __future__ import annotations

import io
import json
import re
import socket
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from threading import Lock

from google.protobuf.message import DecodeError

from fumehood.benchmarks.registry import load_suite
from fumehood.core.clock import StoppedClock
from fumehood.core.errors import InputError, SpecError
from fumehood.core.evidence import read_evidence
from fumehood.core.json_values import canonical_json, digest_json, ordered_json
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.core.outcome import Finished, GaveUp, Refusal
from fumehood.core.trace import BrokenTrace, verify_chain
from fumehood.engines.output import FrameReader
from fumehood.harness_modes.registry import HARNESS_MODES
from fumehood.orchestrator.config import read_yaml
from fumehood.records.frozen_suite import freeze_suite, read_frozen_suite
from fumehood.records.row import EpisodeRow
from fumehood.records.run_folder import RunFolder
from fumehood.records.verify import verify
from fumehood.report.safe_text import safe
from fumehood.service.inline import play_inline
from fumehood.service.seat_endpoint import SeatEndpoint, SeatLimits, read_arguments
from fumehood.wire.convert import (
    inline_agent_from_pb,
    played_from_pb,
    played_to_pb,
    reply_to_pb,
    spec_from_pb,
    submission_to_pb,
)
from fumehood_agent._proto.v1 import control_pb2, tool_pb2
from tests.parts.sealed_runs import KEY, NAMES, finished_run, new_run
from tests.parts.specs import episode_spec

Target = Callable[[bytes], None]

LIMITS = SeatLimits(argument_bytes=4096, argument_depth=16)
WORLDS = ("crud", "files", "retrieval", "scheduling")


def arguments(data: bytes) -> None:
    """Arguments of a call, as JSON text from an agent."""
    read = read_arguments(data.decode("utf-8", "surrogateescape"), LIMITS)
    if not isinstance(read, Refusal):
        ordered_json(read).encode("ascii")
        assert json.loads(canonical_json(read)) == read
        json.dumps(read, ensure_ascii=False).encode("utf-8")


def tool_messages(data: bytes) -> None:
    """Protobuf messages of an agent, at a real seat endpoint."""
    endpoint = _endpoint(WORLDS[len(data) % len(WORLDS)])
    for raw in data.split(b"\xff\xfe")[:8]:
        with suppress(DecodeError):
            _take(endpoint, tool_pb2.InteractRequest.FromString(raw))


def control_messages(data: bytes) -> None:
    """An episode specification on the wire; tasks are untrusted."""
    with suppress(DecodeError, InputError):
        spec = spec_from_pb(control_pb2.OpenEpisodeRequest.FromString(data).spec)
        HARNESS_MODES.load("native")().open_episode(spec, MemoryRecorder(), StoppedClock())


def inline_messages(data: bytes) -> None:
    """An episode that is played inline, with the moves of an untrusted task."""
    with suppress(DecodeError, InputError):
        message = control_pb2.PlayInlineRequest.FromString(data)
        spec = spec_from_pb(message.spec)
        # Only an agent that replays moves always ends; seats of a conversation may wait forever.
        if len(spec.seats) == 1:
            agents = [
                replace(inline_agent_from_pb(agent), name="oracle") for agent in message.agents
            ]
            result = play_inline(spec, agents, StoppedClock(), LIMITS)
            assert played_from_pb(played_to_pb(result)) == result


def calls(data: bytes) -> None:
    """Calls of the tools of a world through all layers, with a fault of every family."""
    world = WORLDS[data[0] % len(WORLDS)] if data else WORLDS[0]
    endpoint = _endpoint(world, _FAULTS)
    tools = endpoint.view_task().tools
    for line in data[1:].split(b"\n")[:16]:
        tool = tools[line[0] % len(tools)].name if line else ""
        answer = endpoint.call(tool, line[1:].decode("utf-8", "replace"), "")
        reply_to_pb(answer).SerializeToString()


def trace(data: bytes) -> None:
    """A trace file of a run folder."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "trace").write_bytes(data)
        with suppress(InputError, BrokenTrace):
            records = RunFolder(Path(folder)).read_trace(_row("trace"))
            verify_chain(records)
            with suppress(ValueError):
                read_evidence(json.loads(record.event_json) for record in records)


def rows(data: bytes) -> None:
    """The rows of a run folder, and its seals."""
    folder = _signed_run()
    (folder.path / "episodes.jsonl").write_bytes(data)
    with suppress(InputError):
        for row in folder.rows():
            assert EpisodeRow.from_json(row.to_json()) == row
    assert verify(folder.path, KEY.public).damage


def seal(data: bytes) -> None:
    """The seal of a run folder."""
    folder = _signed_run()
    path = folder.path / "seal.json"
    sound = path.read_bytes()
    try:
        path.write_bytes(data)
        assert data == sound or verify(folder.path).damage
    finally:
        path.write_bytes(sound)


def native_suite(data: bytes) -> None:
    """A task file."""
    _suite(data, "native:{}")


def toolmisuse_suite(data: bytes) -> None:
    """A ToolMisuseBench task file."""
    _suite(data, "toolmisuse:{}")


def frozen_suite(data: bytes) -> None:
    """The tasks of a run folder."""
    with suppress(InputError):
        read = read_frozen_suite("s", data)
        again = read_frozen_suite("s", freeze_suite(read).encode("ascii"))
        assert freeze_suite(again) == freeze_suite(read)


def fault_plan(data: bytes) -> None:
    """A fault plan of a task, in both harness modes."""
    with suppress(ValueError, RecursionError):
        faults = json.loads(data)
        if not isinstance(faults, list) or not all(isinstance(one, dict) for one in faults):
            return
        planned = [{**one, "family": str(one.get("family", "timeout"))} for one in faults]
        well_formed = [one for one in planned if _is_rule(one)]
        for harness_mode in HARNESS_MODES:
            with suppress(SpecError):
                spec = episode_spec(*well_formed, harness_mode=harness_mode)
                episode = HARNESS_MODES.load(harness_mode)().open_episode(
                    spec, MemoryRecorder(), StoppedClock()
                )
                episode.seats[0].call("get_account", {"id": "ax1"})


def config(data: bytes) -> None:
    """The YAML file of ``fumehood run --config``."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.yaml"
        path.write_bytes(data)
        with suppress(InputError):
            read_yaml(path)


def frames(data: bytes) -> None:
    """Output of a container in the frames of the Docker daemon; the content is untrusted."""
    near, far = socket.socketpair()
    reader = FrameReader(near, 1024)
    far.sendall(data[:65536])
    far.close()
    output = reader.finish(5.0)
    assert len(output.stdout) <= 2048
    assert len(output.stderr) <= 2048


def shown_text(data: bytes) -> None:
    """Text of an agent, shown on a terminal."""
    shown = safe(data.decode("utf-8", "replace"))
    assert not re.search(
        r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]", shown
    )
    io.StringIO().write(shown)


TARGETS: Mapping[str, Target] = {
    target.__name__: target
    for target in (
        arguments,
        tool_messages,
        control_messages,
        inline_messages,
        calls,
        trace,
        rows,
        seal,
        native_suite,
        toolmisuse_suite,
        frozen_suite,
        fault_plan,
        config,
        frames,
        shown_text,
    )
}

_FAULTS = (
    {
        "family": "adversarial_error",
        "trigger": {"prob": 0.5},
        "payload": {"map": {"timeout": "x"}},
    },
    {"family": "rate_limit", "trigger": {"on_nth_call": 3}},
    {"family": "timeout", "trigger": {"prob": 0.3}},
    {
        "family": "schema_drift",
        "payload": {"rename_args": {"id": "identifier", "path": "place"}},
    },
)


def _endpoint(world: str, faults: tuple[Mapping[str, object], ...] = ()) -> SeatEndpoint:
    spec = episode_spec(*faults, world=world, state={}, calls=20)
    recorder, harness_mode = MemoryRecorder(), HARNESS_MODES.load("native")()
    episode = harness_mode.open_episode(spec, recorder, StoppedClock())
    return SeatEndpoint(
        episode.seats[0],
        recorder=recorder,
        lock=Lock(),
        clock=StoppedClock(),
        limits=LIMITS,
        on_broken=_must_not_break,
    )


def _must_not_break(why: object) -> None:
    raise AssertionError(f"the world broke down: {why}")


def _take(endpoint: SeatEndpoint, request: tool_pb2.InteractRequest) -> None:
    if request.WhichOneof("request") == "submit":
        given_up = request.submit.WhichOneof("end") == "give_up_reason"
        text = request.submit.give_up_reason if given_up else request.submit.answer
        submission_to_pb(
            endpoint.submit(GaveUp(text) if given_up else Finished(text))
        ).SerializeToString()
    else:
        call = request.call
        reply_to_pb(
            endpoint.call(call.tool_name, call.arguments_json, call.call_id)
        ).SerializeToString()


def _suite(data: bytes, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tasks.jsonl"
        path.write_bytes(data)
        with suppress(InputError):
            suite = load_suite(name.format(path))
            digest_json(freeze_suite(suite))


def _is_rule(rule: Mapping[str, object]) -> bool:
    return all(
        isinstance(rule.get(key, {}), dict) for key in ("trigger", "payload")
    ) and isinstance(rule.get("severity", ""), str)


def _row(trace_path: str) -> EpisodeRow:
    (row,) = [row for row in _signed_run_rows() if row.name == NAMES[0]]
    return EpisodeRow.from_json({**row.to_json(), "trace": trace_path})


@cache
def _signed_run_rows() -> tuple[EpisodeRow, ...]:
    with tempfile.TemporaryDirectory() as folder:
        return tuple(finished_run(Path(folder) / "run").rows())


@cache
def _signed_run() -> RunFolder:
    _KEPT.append(tempfile.TemporaryDirectory())
    return new_run(Path(_KEPT[-1].name) / "run")


_KEPT: list[tempfile.TemporaryDirectory[str]] = []
"""Until this process ends."""

"""Divides the time of a tool call into parts."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from statistics import median

from fumehood.core.clock import StoppedClock
from fumehood.core.task import Case
from fumehood.harness_modes.registry import HARNESS_MODES
from fumehood.orchestrator.plan import PlannedEpisode
from fumehood.service.trace_stream import TraceStream
from fumehood.wire.episode_channel import message_to_bytes
from fumehood.wire.ports import EpisodeMessage, Records
from scripts.bench.measure import Figure

CALLS = 5000


def call_parts(
    kind: str, times_us: Mapping[str, list[float]], layers_us: float, trace_us: float
) -> Iterator[Figure]:
    """Yield the parts of the median of a call, microseconds.

    Args:
        kind: ``unary`` or ``stream``.
        times_us: times of tool calls and echoes, and the client's processor time for an echo,
            microseconds.
        layers_us: time of the layers and the world, from the trace, microseconds.
        trace_us: processor time for the event of a call, after its answer, microseconds.
    """
    tool, echo, client = (
        median(times_us[f"{kind}_{part}"]) for part in ("tool", "echo", "echo_client")
    )
    parts = {
        "client (processor time for an echo)": client,
        "transport (the rest of the echo)": echo - client,
        "endpoint (the rest of the call)": tool - echo - layers_us,
        "layers (measured in the trace)": layers_us,
        "trace (processor time, not awaited)": trace_us,
    }
    for part, value_us in parts.items():
        yield Figure(f"  {kind} call, {part}", f"{value_us:.0f} µs")


def time_in_layers_us(messages: Iterable[EpisodeMessage]) -> float:
    """Return the median duration of the calls in a trace, microseconds."""
    return median(
        record.duration_us
        for message in messages
        if isinstance(message, Records)
        for record in message.records
        if json.loads(record.event_json)["kind"] == "call"
    )


def trace_us(case: Case) -> float:
    """Return the processor time to serialise, chain and encode the event of a call."""
    spec = PlannedEpisode("bench", case, 0, 1).to_spec(60_000)
    stream = TraceStream()
    episode = HARNESS_MODES.load(spec.harness_mode)().open_episode(spec, stream, StoppedClock())
    for _ in range(CALLS):
        episode.seats[0].call("get_account", {"id": "acct3"})
    stream.close()
    before = time.thread_time()
    for message in stream.stream():
        message_to_bytes(message)
    return (time.thread_time() - before) / CALLS * 1e6

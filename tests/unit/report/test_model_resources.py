"""The resources of a seat include the reported tokens, the largest context and the latency."""

from __future__ import annotations

from typing import Any

from fumehood.core.evidence import Evidence
from fumehood.report.statistics.resources import times_and_costs
from fumehood.report.traces import ReadTrace, StampedEvent


def model_call(seat: str, read: int, written: int, **more: int) -> dict[str, Any]:
    return {
        "kind": "model_call",
        "seat": seat,
        "reported": {"input": read, "output": written, **more},
        "spent": {"model_calls": 1, "model_tokens": read + written, "model_microusd": 3},
    }


def test_each_seat_has_its_own_tokens_context_and_times() -> None:
    events = [
        (model_call("agent", 100, 10, cached=60), 1000, 5_000),
        (model_call("user", 40, 4), 2000, 1_000),
        ({"kind": "call", "seat": "agent"}, 2500, 200),
        (model_call("agent", 300, 20, reasoning=15), 4000, 7_000),
        (model_call("agent", 200, 1), 4500, 1_000),
    ]
    stamped = tuple(StampedEvent(*event) for event in events)
    costs = times_and_costs(ReadTrace(stamped, Evidence((), (), {}, {}, ())))
    assert costs["agent"] == {
        "service_us": 200,
        "model_calls": 3,
        "model_tokens": 631,
        "model_microusd": 9,
        "model_us": 13_000,
        "input_tokens": 600,
        "output_tokens": 31,
        "cached_tokens": 60,
        "reasoning_tokens": 15,
        "context_peak": 300,
        "elapsed_ms": 3500,
    }
    assert costs["user"]["context_peak"] == 40
    assert costs["user"]["elapsed_ms"] == 0

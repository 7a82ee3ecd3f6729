"""All export formats by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from fumehood.exports.atif import trajectories
from fumehood.exports.exported import ExportedRun
from fumehood.exports.inspect_log import inspect_logs
from fumehood.exports.junit import test_results
from fumehood.exports.otel import telemetry
from fumehood.exports.sarif import safety_findings


@dataclass(frozen=True, slots=True)
class Exporter:
    """One format."""

    summary: str
    """What it writes, for lists."""
    files: Callable[[ExportedRun], Iterator[tuple[str, bytes]]]
    """Yields the relative path and the content of each file."""


EXPORTERS: Mapping[str, Exporter] = {
    "inspect": Exporter("logs for Inspect, AGENT.eval", inspect_logs),
    "atif": Exporter("trajectories for Harbor, AGENT/TASK/TRIAL.json", trajectories),
    "otel": Exporter("OpenTelemetry spans and evaluations, OTLP/JSON lines", telemetry),
    "sarif": Exporter("failed safety checks, safety.sarif", safety_findings),
    "junit": Exporter("test results, junit.xml", test_results),
}

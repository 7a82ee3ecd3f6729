"""All export formats by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from fumehood.core.errors import InputError
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


def export_files(run: ExportedRun, name: str) -> Iterator[tuple[str, bytes]]:
    """Yield the relative path and the content of each file of a format.

    Raises:
        InputError: a trace has an event of another form; code of an agent that took over the
            process of its episode may have written it.
    """
    try:
        yield from EXPORTERS[name].files(run)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{run.run.path}: an event of a trace has an unknown form ({type(error).__name__}: "
            f"{error}); export the other episodes, one at a time, with --episode"
        ) from None

"""Reports of real runs."""

from __future__ import annotations

from pathlib import Path

from fumehood.orchestrator.rescore import rescore
from fumehood.records.run_reader import RunReader
from fumehood.report.findings import compute_findings
from fumehood.report.runs import join_run, subjects_of
from fumehood.report.write import write_report


def report_of(*folders: RunReader, out: Path) -> Path:
    """Write the report of some runs and return its page."""
    runs = [join_run(folder, rescore(folder)) for folder in folders]
    subjects = subjects_of(runs)
    return write_report(compute_findings(runs, subjects, subjects[0]), out)[0]

"""The findings of a report, with the baselines, proofs and instructions of its runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fumehood.cli.baselines import Solvability, baselines_of
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.task import Case
from fumehood.orchestrator.run_plan import config_of, instructions_of

if TYPE_CHECKING:
    from fumehood.report.findings import Findings
    from fumehood.report.runs import Run, Subject


def findings_of(
    runs: Sequence[Run], subjects: Sequence[Subject], baseline: Subject | None
) -> Findings:
    """Return the findings about runs; comparisons are with ``baseline``, if there is one.

    Raises:
        InputError: a trace is missing or not a trace.
    """
    from fumehood.report.findings import compute_findings

    return compute_findings(runs, subjects, baseline, Solvability, baselines_of, _received_in)


def _received_in(run: Run) -> Callable[[Case, int], tuple[SeatSpec, ...]]:
    return instructions_of(config_of(run.folder)).of

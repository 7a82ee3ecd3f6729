"""Small real runs for tests of run folders."""

from __future__ import annotations

from pathlib import Path

from fumehood.benchmarks.registry import load_suite
from fumehood.core.task import Suite
from fumehood.orchestrator.rescore import rescore
from fumehood.records.run_reader import RunReader
from fumehood.report.findings import Findings, compute_findings
from fumehood.report.runs import join_run, subjects_of
from fumehood.service.inline import Worker
from tests.parts.memory_runs import builtin, play_run


def part_of_sample(tasks: int, start: int = 0) -> Suite:
    """Return some tasks of the sample suite."""
    return Suite("sample", load_suite("sample").cases[start : start + tasks])


def played(path: Path, *agents: str, tasks: int = 10, trials: int = 1, start: int = 0) -> RunReader:
    """Run built-in agents on some tasks of the sample suite."""
    players: dict[str, Worker] = {name: builtin(name) for name in agents}
    return play_run(path, part_of_sample(tasks, start), players, trials=trials)


def findings_of(*folders: RunReader, score_again: bool = True) -> Findings:
    """Compute the findings of runs, with the first agent as the baseline.

    Args:
        folders: of the runs.
        score_again: score from the traces; otherwise take the rows as they are.
    """
    runs = [
        join_run(folder, rescore(folder) if score_again else folder.rows()) for folder in folders
    ]
    subjects = subjects_of(runs)
    return compute_findings(runs, subjects, subjects[0])

"""Section with how each run was made."""

from __future__ import annotations

from fumehood.core.json_values import as_object
from fumehood.records.grants import model_grants, monitors_of
from fumehood.records.row import EpisodeName
from fumehood.report import wording
from fumehood.report.data_table import DataTable, Row, integers, texts
from fumehood.report.findings import Findings
from fumehood.report.runs import Run, agents_of
from fumehood.report.sections.section import Section
from fumehood.report.summary import run_digest
from fumehood.report.text_table import TextTable

DIGEST_CHARS = 16


def runs_section(findings: Findings) -> Section:
    """Return how each run was made."""
    return Section(
        label="Runs",
        title="Runs",
        tables=[run_table(findings)],
        data=[run_data(findings)],
        is_open=True,
    )


def run_table(findings: Findings) -> TextTable:
    """Return one row for each run."""
    made = ("Started", "Suite", "Engine", "Isolation", "Fumehood")
    header = ("Run", *made, "Seed", "Trials", "Trace digest")
    rows = [
        (
            *(run.label, _started(findings, run)),
            f"{run.suite.name} ({_text(run, 'suite_digest')[:DIGEST_CHARS]}…)",
            *(_text(run, "engine"), run.folder.isolation()),
            str(as_object(run.manifest.get("versions")).get("fumehood", "")),
            *(str(run.seed), str(run.trials), f"{_trace_digest(run)[:DIGEST_CHARS]}…"),
        )
        for run in findings.runs
    ]
    note = (
        "Started: start of the first episode, UTC. "
        "Deterministic agents have the same trace digest on every engine."
    )
    return TextTable("Runs", header, rows, names=6, note=note)


def run_data(findings: Findings) -> DataTable:
    """Return one row for each run, with whole digests."""
    columns = (
        *texts("run", "folder", "run_id", "started", "suite", "suite_digest"),
        *texts("engine", "isolation", "versions"),
        *integers("seed", "trials", "planned", "episodes"),
        *texts("trace_digest", "model_grants", "monitors"),
    )
    rows: list[Row] = [
        (
            *(run.label, str(run.folder.path), _text(run, "run"), _started(findings, run)),
            *(run.suite.name, _text(run, "suite_digest")),
            *(_text(run, "engine"), run.folder.isolation(), _versions(run)),
            *(run.seed, run.trials, run.planned, len(run.results)),
            *(_trace_digest(run), ", ".join(model_grants(run.manifest))),
            ", ".join(monitors_of(run.manifest)),
        )
        for run in findings.runs
    ]
    return DataTable("runs", columns, rows)


def _started(findings: Findings, run: Run) -> str:
    starts = [own.started_ms for own in findings.subjects if own.subject.run is run]
    return wording.minute(min(filter(None, starts), default=None))


def _text(run: Run, name: str, missing: str = "") -> str:
    return str(run.manifest.get(name, missing))


def _trace_digest(run: Run) -> str:
    """Return the digest that ``fumehood run`` prints."""
    agents = agents_of(run)  # Not for each name, because it reads all results.
    names = (
        EpisodeName(agent, case.task.task_id, trial)
        for case in run.suite.cases
        for trial in range(run.trials)
        for agent in agents
    )
    return run_digest([result.row for result in run.results], map(str, names))


def _versions(run: Run) -> str:
    versions = as_object(run.manifest.get("versions"))
    return ", ".join(f"{name} {version}" for name, version in versions.items())

"""Which runs a report is of, as a table for people."""

from __future__ import annotations

from datetime import UTC, datetime

from fumehood.core.json_values import Json, JsonObject
from fumehood.records.episode_name import EpisodeName
from fumehood.report.runs import Run, agents_of
from fumehood.report.summary import run_digest
from fumehood.report.tables.reading import ReadingTable


def run_table(runs: tuple[Run, ...]) -> ReadingTable:
    """Return how each run was made, and the digest of its traces as ``fumehood run`` prints it."""
    header = (
        "Run",
        "Begun",
        "Suite",
        "Engine",
        "Isolation",
        "Seed",
        "Trials",
        "Trace digest",
        "Fumehood",
    )
    note = (
        "Begun: when run.json was written, UTC. The same seed gives the same digest on any engine."
    )
    return ReadingTable("Runs", header, [_row(run) for run in runs], names=5, note=note)


def _row(run: Run) -> tuple[str, ...]:
    manifest = run.manifest
    config, versions = _object(manifest.get("config")), _object(manifest.get("versions"))
    trials = config.get("trials", 1)
    return (
        run.label,
        _begun(run),
        f"{run.suite.name} ({str(manifest.get('suite_digest', ''))[:16]}…)",
        str(manifest.get("engine", "")),
        str(manifest.get("isolation", "unknown")),
        str(config.get("seed", 0)),
        str(trials),
        f"{_digest(run, trials if isinstance(trials, int) else 1)[:16]}…",
        str(versions.get("fumehood", "")),
    )


def _begun(run: Run) -> str:
    written = (run.folder.path / "run.json").stat().st_mtime
    return datetime.fromtimestamp(written, UTC).strftime("%Y-%m-%d %H:%M")


def _digest(run: Run, trials: int) -> str:
    names = (
        EpisodeName(agent, case.task.task_id, trial)
        for case in run.suite.cases
        for trial in range(trials)
        for agent in agents_of(run)
    )
    return run_digest([result.row for result in run.results], map(str, names))


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}

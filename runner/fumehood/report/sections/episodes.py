"""Data table of single episodes."""

from __future__ import annotations

from collections.abc import Mapping

from fumehood.core.outcome import outcome_name
from fumehood.report.data_table import Column, DataTable, Kind, Row, integers, numbers, texts
from fumehood.report.findings import Findings, SubjectFindings
from fumehood.report.results import CLEAN, Result
from fumehood.report.statistics.metrics import THE_EIGHT, score_metrics


def episode_data(findings: Findings) -> DataTable:
    """Return one row for each episode."""
    scores = score_metrics(
        [result for agent in findings.subjects for result in agent.subject.results]
    )
    columns = (
        *texts("run", "agent", "task"),
        *integers("trial"),
        *texts("domain", "faults", "outcome"),
        Column("success", Kind.TRUTH),
        *numbers(*(metric.name for metric in THE_EIGHT[1:])),
        *texts("failure", "failure_secondary"),
        *integers("wall_ms", "attempts", "infra_attempts", "refusals"),
        *texts("trace", "trace_digest"),
        *texts("suite", "model", "model_parameters", "scaffold"),
        *texts("data_mode", "fault_level", "budget_level", "team", "seed", "core_digest"),
        *numbers(*(f"score_{metric.name}" for metric in scores)),
    )
    rows = [
        (*_episode(agent, levels, result), *(metric.of(result) for metric in scores))
        for agent in findings.subjects
        for levels in (agent.subject.levels,)
        for result in agent.subject.results
    ]
    return DataTable("episodes", columns, rows)


def _episode(agent: SubjectFindings, levels: Mapping[str, str], result: Result) -> Row:
    row, why = result.row, agent.attributions.get(str(result.row.name))
    scored, subject = result.success is not None, agent.subject
    return (
        subject.run.label,
        row.name.agent,
        row.name.task,
        row.name.trial,
        result.task.domain,
        "+".join(result.task.families) or CLEAN,
        outcome_name(row.outcome),
        result.success,
        *(metric.of(result) if scored else None for metric in THE_EIGHT[1:]),
        why.primary.value if why else None,
        "+".join(label.value for label in why.secondary) if why else None,
        row.wall_ms,
        row.attempts,
        row.infra_attempts,
        row.refusals,
        row.trace,
        row.trace_digest,
        levels["suite"],
        subject.model,
        subject.parameters,
        subject.scaffold,
        levels["data_mode"],
        levels["faults"],
        levels["budget"],
        levels["team"],
        str(row.seed),
        result.task.core_digest,
    )

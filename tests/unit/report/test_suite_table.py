"""The baselines in the tables with success: by suite, domain and fault, and of pairs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from fumehood.benchmarks.registry import load_suite
from fumehood.cli.findings import findings_of
from fumehood.core.score import UNGRADED
from fumehood.core.task import Suite
from fumehood.orchestrator.rescore import rescore
from fumehood.report.experiment import domain_table, experiment_of, suite_table
from fumehood.report.findings import Baselines, Versus, compute_findings
from fumehood.report.runs import join_run, subjects_of
from fumehood.report.sections.comparisons import flip_table, versus_table
from fumehood.report.sections.success import group_table
from fumehood.report.statistics.pairs import compare
from fumehood.report.text_table import TextTable
from tests.parts.memory_runs import builtin, play_run

AGENTS = ("policy_aware", "schema_repair")


@pytest.mark.slow
def test_each_suite_has_a_column_and_the_baselines_are_the_last_rows(tmp_path: Path) -> None:
    cases = load_suite("sample").cases
    players = {name: builtin(name) for name in AGENTS}
    suites = {"first": cases[:10], "second": cases[15:25]}
    readers = [
        play_run(tmp_path / name, Suite(name, part), players) for name, part in suites.items()
    ]
    runs = [join_run(reader, rescore(reader)) for reader in readers]
    experiment = experiment_of(findings_of(runs, subjects_of(runs), None).subjects)
    assert experiment is not None
    table = suite_table(experiment)
    assert table.header == ("Model", "Agent", "first", "second", "Mean over suites", "Rank")
    assert [row[1] for row in table.rows] == [*AGENTS, "no-op", "oracle"]
    assert [row[-1] for row in table.rows] == ["1", "2", "–", "–"]
    assert table.rows[2][2:4] == ("0.0%", "0.0%")
    assert table.rows[3][2:4] == ("100.0%", "100.0%")
    for row, agent in zip(table.rows, AGENTS, strict=False):
        own = {
            run.suite.name: sum(
                bool(result.success) for result in run.results if result.row.name.agent == agent
            )
            for run in runs
        }
        assert [float(cell.split("%")[0]) / 10 for cell in row[2:4]] == list(own.values())
    domains = domain_table(experiment)
    assert {row[0] for row in domains.rows} <= set(suites)
    assert columns(domains, "No-op", "Oracle") == {("0.0%", "100.0%")}


def test_an_agent_without_a_headline_number_in_a_suite_has_no_rank(tmp_path: Path) -> None:
    cases, runs = load_suite("sample").cases, []
    for name, part in {"first": cases[:2], "second": cases[15:17]}.items():
        players = {agent: builtin(agent) for agent in AGENTS}
        reader = play_run(tmp_path / name, Suite(name, part), players)
        runs.append(join_run(reader, reader.rows()))
    lost, *others = runs[0].results
    ungraded = replace(lost, row=replace(lost.row, score=UNGRADED))
    runs[0] = replace(runs[0], results=(ungraded, *others))
    experiment = experiment_of(findings_of(runs, subjects_of(runs), None).subjects)
    assert experiment is not None
    rows = {row[1]: row[2:] for row in suite_table(experiment).rows}
    without = lost.row.name.agent
    (other,) = {*AGENTS} - {without}
    assert (rows[without][0], *rows[without][2:]) == ("–", "–", "–")
    assert rows[without][1] != "–"
    assert rows[other][3] == "1"


def columns(table: TextTable, *titles: str) -> set[tuple[str, ...]]:
    """Return the different values of some columns."""
    at = [table.header.index(title) for title in titles]
    return {tuple(row[index] for index in at) for row in table.rows}


def test_each_group_and_each_pair_has_its_own_baselines(tmp_path: Path) -> None:
    cases = load_suite("sample").cases
    reader = play_run(
        tmp_path / "run", Suite("mixed", cases[:10]), {name: builtin(name) for name in AGENTS}
    )
    run = join_run(reader, rescore(reader))
    subjects = subjects_of([run])
    free, *others = (case.task.task_id for case in cases[:10])
    noop = {free: True, **dict.fromkeys(others, False)}
    findings = compute_findings(
        [run],
        subjects,
        subjects[0],
        baselines_of=lambda suite: Baselines(noop, dict.fromkeys(noop, True)),
    )
    by_fault = group_table(findings, "by_fault", "Fault")
    (pair,) = findings.versus
    flips = flip_table(pair)
    own = {result.task.task_id: result.task.families or ("clean",) for result in run.results}
    for table in (by_fault, flips):
        bounds = {row[0]: row[table.header.index("No-op")] for row in table.rows}
        tasks = Counter(family for families in own.values() for family in families)
        assert bounds == {
            family: f"{(family in own[free]) / tasks[family]:.1%}" for family in tasks
        }
    assert columns(versus_table([pair]), "No-op", "Oracle") == {("10.0%", "100.0%")}
    assert columns(group_table(findings, "by_domain", "Domain"), "Oracle") == {("100.0%",)}


def test_a_comparison_without_baselines_has_no_columns_for_them(tmp_path: Path) -> None:
    reader = play_run(
        tmp_path / "run",
        Suite("sample", load_suite("sample").cases[:3]),
        {name: builtin(name) for name in AGENTS},
    )
    first, second = subjects_of([join_run(reader, rescore(reader))])
    versus = Versus(first, second, compare(first.results, second.results))
    assert "No-op" not in {*versus_table([versus]).header, *flip_table(versus).header}

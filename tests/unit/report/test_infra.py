"""Attempts that ended as infra are counted, and agents that differ in them are pointed out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy import array
from scipy.stats import fisher_exact as scipys

from fumehood.core.outcome import Infra, InfraKind
from fumehood.core.score import UNGRADED
from fumehood.records.row import EpisodeRow
from fumehood.records.run_reader import RunReader
from fumehood.report.sections.attempts import attempts_data, attempts_table
from fumehood.report.sections.episodes import episode_data
from fumehood.report.statistics.infra import (
    Attempts,
    attempts_of,
    fisher_exact,
    infra_differences,
)
from fumehood.report.summary import summarize
from tests.parts.reading import sign_again, verified
from tests.unit.report.runs import findings_of, played

VOID = Infra(InfraKind.SERVICE, "gone")


def voided(row: EpisodeRow, attempts: int = 3) -> EpisodeRow:
    """Return the row of an episode whose attempts all ended as infra."""
    ended = replace(row, outcome=VOID, score=UNGRADED, attempts=attempts)
    return replace(ended, trace="", trace_digest="")


@pytest.fixture
def resumed(tmp_path: Path) -> RunReader:
    """A run of two agents; one of them lost every attempt at two tasks before a resume."""
    source = played(tmp_path / "run", "policy_aware", "noop", tasks=6)
    rows = source.rows()
    lost = [voided(row) for row in rows if row.name.agent == "policy_aware"][:2]
    text = "".join(json.dumps(row.to_json()) + "\n" for row in [*lost, *rows])
    (source.path / "episodes.jsonl").write_text(text, encoding="utf-8")
    return verified(sign_again(source.path))


def test_attempts_before_a_resume_are_counted(resumed: RunReader) -> None:
    honest, noop = summarize(resumed.rows(), ("policy_aware", "noop"))
    assert (honest.infra, honest.attempts.infra, noop.attempts.infra) == (0, 6, 0)
    assert honest.attempts.success_with_infra_failed == honest.successes / (6 + 6)
    assert honest.success_rate == honest.successes / 6


@pytest.mark.slow
def test_every_table_and_export_shows_them(resumed: RunReader) -> None:
    findings = findings_of(resumed, score_again=False)
    subjects = [agent.subject for agent in findings.subjects]
    assert attempts_table(subjects).rows[0][1:4] == ("12", "6", "0")
    successes = attempts_of(one.row for one in subjects[0].results).successes
    assert attempts_data(subjects).rows[0][2:7] == (12, 6, successes, 0, 6)
    episodes = episode_data(findings)
    column = [column.name for column in episodes.columns].index("infra_attempts")
    assert sum(int(str(row[column])) for row in episodes.rows) == 6
    assert findings.subjects[0].whole.counts.repeated == 6


def test_a_repeated_attempt_of_one_command_is_counted(resumed: RunReader) -> None:
    row = resumed.rows()[2]
    assert replace(row, attempts=3).infra_attempts == 2
    assert voided(row).infra_attempts == 3
    assert replace(row, attempts=1).infra_attempts == 0


def test_agents_that_differ_are_pointed_out_with_the_numbers() -> None:
    cheating, honest = Attempts(60, 60, 0, 80), Attempts(60, 25, 0, 1)
    [first, second] = infra_differences({"cheating": cheating, "honest": honest})
    assert first.p_value < 1e-9
    assert str(first).startswith(
        "cheating: 80 of 140 attempts ended as infra; other agents: 1 of 61 (Fisher's exact"
    )
    assert second.agent == "honest"


@pytest.mark.parametrize("infra", [(0, 0), (3, 4), (1, 0)])
def test_agents_that_hardly_differ_are_not(infra: tuple[int, int]) -> None:
    agents = {str(index): Attempts(60, 20, 0, count) for index, count in enumerate(infra)}
    assert infra_differences(agents) == []


def test_one_agent_differs_from_none() -> None:
    assert infra_differences({"one": Attempts(1, 1, 0, 99)}) == []


@given(*[st.integers(0, 60)] * 4)
def test_the_p_value_is_that_of_scipy(first: int, second: int, third: int, fourth: int) -> None:
    own = fisher_exact(first, second, third, fourth)
    assert own == pytest.approx(scipys(array([[first, second], [third, fourth]]))[1], abs=1e-6)

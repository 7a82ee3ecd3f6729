"""Names of files and fields of rows, on which other programs and older runs depend."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fumehood.core.ledger import BudgetKind
from fumehood.core.outcome import (
    ROW_CHARACTERS_MAX,
    AgentCrashed,
    Finished,
    GaveUp,
    Infra,
    InfraKind,
    OutOfBudget,
)
from fumehood.core.score import UNGRADED
from fumehood.records.row import EpisodeName, EpisodeRow, file_name
from fumehood.records.run_folder import RunFolder
from tests.parts.sealed_runs import NAMES, SUITE, new_run, play, trace_of


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("plain-1.0_a", "plain-1.0_a"),
        ("ends.", "ends~"),
        ("a b/c", "a-b-c~"),
        (" (a) ", "a~"),
        ("..", "x~"),
        ("é", "x~"),
        ("n" * 200, f"{'n' * 60}~"),
    ],
)
def test_an_unsafe_name_has_a_readable_substitute_with_a_digest(name: str, stem: str) -> None:
    made = file_name(name)
    assert made.startswith(stem)
    assert len(made) == len(stem) + (12 if stem.endswith("~") else 0)


def test_a_row_names_its_outcome_and_its_episode(tmp_path: Path) -> None:
    folder = new_run(tmp_path / "run")
    play(folder, NAMES[0])
    (row,) = folder.rows()
    stored = replace(row, outcome=OutOfBudget(BudgetKind.STEPS)).to_json()
    assert stored["outcome"] == "out_of_budget(steps)"
    assert stored["end"] == {"outcome": "out_of_budget", "kind": "steps"}
    assert (stored["agent"], stored["task"], stored["trial"]) == ("agent", "t1", 0)
    assert (stored["episode"], stored["seed"]) == ("agent/t1/0", "7")
    assert EpisodeRow.from_json(stored) == replace(row, outcome=OutOfBudget(BudgetKind.STEPS))


@pytest.mark.parametrize("end", [Finished, GaveUp, AgentCrashed])
def test_a_long_text_of_an_agent_is_cut_in_its_row(
    end: type[Finished | GaveUp | AgentCrashed], tmp_path: Path
) -> None:
    folder = new_run(tmp_path / "run")
    play(folder, NAMES[0])
    (row,) = folder.rows()
    whole, cut = "a" * ROW_CHARACTERS_MAX, "a" * (ROW_CHARACTERS_MAX - 1) + "…"
    assert replace(row, outcome=end(whole)).outcome == end(whole)
    long = replace(row, outcome=end(whole + "b"))
    assert long.outcome == end(cut)
    assert EpisodeRow.from_json(long.to_json()) == long


def test_each_infra_attempt_of_replaced_rows_is_counted(tmp_path: Path) -> None:
    folder = new_run(tmp_path / "run")
    play(folder, NAMES[0])
    (row,) = folder.rows()
    lost = replace(row, outcome=Infra(InfraKind.ENGINE, ""), score=UNGRADED, attempts=3)
    assert (row.infra_attempts, lost.infra_attempts) == (0, 3)
    resumed = replace(row, attempts=2).replacing(lost)
    assert resumed.infra_attempts == 4
    assert resumed.replacing(None) == resumed


@pytest.mark.parametrize("isolation", ["namespaces", None])
def test_the_first_line_of_a_trace_states_the_isolation(
    tmp_path: Path, isolation: str | None
) -> None:
    manifest = {"run": "r"} if isolation is None else {"run": "r", "isolation": isolation}
    folder = RunFolder.create(tmp_path / "run", dict(manifest), SUITE)
    name = EpisodeName("agent", "t1", 0)
    lines = (folder.path / folder.write_trace(name, trace_of("t1"))).read_text().splitlines()
    assert [json.loads(line).get("isolation") for line in lines] == [isolation, None, None, None]

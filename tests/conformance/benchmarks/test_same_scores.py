"""A task has the same trace and score in any order and beside any other task.

A few tasks of every benchmark are played through real services, with all worlds in the same
processes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from fumehood.benchmarks.registry import BENCHMARKS
from fumehood.core.json_values import JsonObject
from fumehood.core.outcome import AgentCrashed
from fumehood.core.score import Score
from fumehood.core.task import Case
from fumehood.records.row import EpisodeRow
from tests.parts.benchmark_slices import SLICES, WITHOUT, make, mixed, play, slices
from tests.parts.folders import short_folder

TASKS = 2
"""Number of tasks of each kind."""
Results = Mapping[str, tuple[str, Score]]
"""Episode → digest of its trace, and its score."""

QUITTER = """
import json, os, pathlib, signal

MOVES = pathlib.Path({moves!r})

class Quitter:
    def run(self, session):
        number, moves = json.loads(MOVES.read_text())[session.task.instruction]
        for move in moves:
            session.call(move["tool_name"], move["args"])
        tried = MOVES.with_name(f"tried{{number}}")
        if tried.exists():
            raise RuntimeError("enough")
        tried.touch()
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def made() -> Iterator[Path]:
    """Return a folder with test data that a service of another user can read."""
    with short_folder() as place:
        make(Path(place))
        yield Path(place)


@pytest.fixture(scope="module")
def cases(made: Path) -> Mapping[str, Sequence[Case]]:
    """Return a few tasks of each suite."""
    found: dict[str, list[Case]] = {}
    for suite, case in slices(made, TASKS):
        found.setdefault(suite, []).append(case)
    return found


@pytest.fixture(scope="module")
def alone(made: Path, cases: Mapping[str, Sequence[Case]]) -> Results:
    """Return the results of one episode at a time, in order, in one service."""
    in_order = tuple(case for kind in cases.values() for case in kind)
    agents = ("oracle", "noop")
    return results(
        play(made / "alone", mixed(made, in_order), agents, concurrency=1, service_workers=1)
    )


def results(rows: Sequence[EpisodeRow]) -> Results:
    return {str(row.name): (row.trace_digest, row.score) for row in rows}


def test_every_benchmark_is_played_or_has_a_reason() -> None:
    assert SLICES.keys() | WITHOUT.keys() == set(BENCHMARKS)


@pytest.mark.slow
def test_the_oracle_solves_every_task(alone: Results) -> None:
    by_oracle = {
        name: score.success for name, (_, score) in alone.items() if name.startswith("oracle/")
    }
    assert [name for name, success in by_oracle.items() if success is not True] == []


@pytest.mark.slow
def test_results_are_the_same_in_reverse_order_with_four_workers(
    made: Path, cases: Mapping[str, Sequence[Case]], alone: Results
) -> None:
    backwards = tuple(reversed([case for kind in cases.values() for case in kind]))
    agents = ("noop", "oracle")
    rows = play(made / "beside", mixed(made, backwards), agents, concurrency=4, service_workers=4)
    assert results(rows) == alone


@pytest.mark.slow
def test_results_are_the_same_after_a_killed_and_a_crashed_attempt(
    made: Path, cases: Mapping[str, Sequence[Case]], alone: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The agent identifies its task by the instruction, which a conversation does not begin with.
    firsts = tuple(kind[0] for kind in cases.values() if kind[0].task.conversation is None)
    moves = made / "moves.json"
    halves = {case.task.seats[0].instruction: (at, _half(case)) for at, case in enumerate(firsts)}
    moves.write_text(json.dumps(halves), encoding="utf-8")
    (made / "quitter.py").write_text(QUITTER.format(moves=str(moves)), encoding="utf-8")
    monkeypatch.chdir(made)
    agents = ("quitter:Quitter", "oracle")
    rows = play(
        made / "killed",
        mixed(made, firsts),
        agents,
        engine="process",
        concurrency=1,
        i_trust_this_agent=True,
    )
    again = results([row for row in rows if row.name.agent == "oracle"])
    assert again == {name: alone[name] for name in again}
    assert len(again) == len(firsts)
    before = [row for row in rows if row.name.agent != "oracle"]
    assert {type(row.outcome) for row in before} == {AgentCrashed}
    # A killed attempt is repeated and then crashes. Two tasks may have the same instruction.
    assert sum(row.attempts == 2 for row in before) == len(halves)


def _half(case: Case) -> list[JsonObject]:
    calls = [dict(move) for move in case.gold.oracle or () if "tool_name" in move]
    return calls[: max(1, len(calls) // 2)]

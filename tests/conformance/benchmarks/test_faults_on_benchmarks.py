"""Faults behind the tools of public benchmarks fire, and the original criterion decides.

Four tasks of every kind, through one real service: under a rate limit, a timeout and a drift of the
interface the oracle copes, and under another timeout it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from fumehood.benchmarks.shared.in_memory import Move, play_in_memory
from fumehood.core.score import Score
from fumehood.core.task import Case, Suite
from fumehood.orchestrator.added_faults import with_faults
from fumehood.orchestrator.config import run_config
from fumehood.orchestrator.launch import start_run
from fumehood.records.row import EpisodeRow
from fumehood.scorers.registry import score_evidence
from tests.parts.benchmark_slices import NEEDS, SILENT, make, play, slices
from tests.parts.folders import short_folder
from tests.parts.installed import installed

BENCHMARKS = ("agentdojo", "bfcl", "dbbench", "tau2")
Moves = Sequence[Move]


def again(moves: Moves) -> Moves:
    """Make the first call twice."""
    first = next(at for at, move in enumerate(moves) if "tool_name" in move)
    return [*moves[: first + 1], *moves[first:]]


def with_region(moves: Moves) -> Moves:
    """Bring what the drifted interface asks for."""
    return [_with_region(move) for move in moves]


def as_before(moves: Moves) -> Moves:
    """Ignore the fault."""
    return moves


@dataclass(frozen=True)
class FaultCase:
    """A fault plan and the reaction of the oracle."""

    plan: str
    met: Callable[[Moves], Moves]


FAULT_CASES = {
    "rate limit": FaultCase("{family: rate_limit, trigger: {on_nth_call: 1}}", again),
    "timeout": FaultCase("{family: timeout, trigger: {on_nth_call: 1}}", again),
    "drift": FaultCase(
        "{family: schema_drift, payload: {add_required: {region: eu}}}", with_region
    ),
    "unmet": FaultCase("{family: timeout, trigger: {on_nth_call: 1}}", as_before),
}


@dataclass(frozen=True)
class Played:
    """The result of a task with an added fault."""

    fault_case: str
    case: Case
    """The case without the added fault."""
    row: EpisodeRow

    def alone(self, moves: Moves) -> Score:
        """Return the score of these moves without faults."""
        return score_evidence(self.case.task, self.case.gold, play_in_memory(self.case.task, moves))


@pytest.fixture(scope="module")
def played() -> Iterator[Sequence[Played]]:
    """Play all cases in one run."""
    with short_folder() as place:
        made = Path(place)
        make(made)
        chosen = list(_chosen(made))
        suite = Suite("faulted", tuple(case for _, case, _ in chosen))
        rows = {row.name.task: row for row in play(made / "run", suite, ("oracle",), concurrency=2)}
        yield [Played(fault_case, case, rows[case.task.task_id]) for fault_case, _, case in chosen]


def _chosen(made: Path) -> Iterator[tuple[str, Case, Case]]:
    """Yield the name of the fault case, the case with it, and the case without it."""
    kinds: dict[str, list[Case]] = {}
    for kind, case in slices(made, len(FAULT_CASES), BENCHMARKS, with_calls=True):
        kinds.setdefault(kind, []).append(case)
    for cases in kinds.values():
        for at, (name, fault_case) in enumerate(FAULT_CASES.items()):
            case = cases[at % len(cases)]
            if at >= len(cases):
                case = replace(case, task=replace(case.task, task_id=f"{case.task.task_id}-{at}"))
            yield name, _with_fault(made, fault_case, case), case


def _with_fault(made: Path, fault_case: FaultCase, case: Case) -> Case:
    file = made / "plan.yaml"
    file.write_text(f"format: fumehood.faults/1\nfaults: [{fault_case.plan}]\n", encoding="utf-8")
    (faulted,) = with_faults(Suite("one", (case,)), str(file)).cases
    return replace(
        faulted, gold=replace(case.gold, oracle=tuple(fault_case.met(case.gold.oracle or ())))
    )


@pytest.mark.slow
def test_every_added_fault_fires_once(played: Sequence[Played]) -> None:
    assert {each.fault_case for each in played} == set(FAULT_CASES)
    assert [
        str(each.row.name) for each in played if each.row.score.metrics["faults_fired"] != 1
    ] == []


@pytest.mark.slow
def test_an_agent_that_handles_the_fault_passes_the_same_checks(
    played: Sequence[Played],
) -> None:
    for each in played:
        if each.fault_case != "unmet":
            alone = each.alone(each.case.gold.oracle or ())
            assert (each.row.score.success, each.row.score.checks) == (True, alone.checks), each


@pytest.mark.slow
def test_a_call_on_which_a_fault_fired_has_no_effect(played: Sequence[Played]) -> None:
    for each in played:
        if each.fault_case == "unmet":
            moves = [*(each.case.gold.oracle or ())]
            del moves[next(at for at, move in enumerate(moves) if "tool_name" in move)]
            alone = each.alone(moves)
            assert (each.row.score.success, each.row.score.checks) == (
                alone.success,
                alone.checks,
            ), each


# tests/episodes/test_dbbench.py covers dbbench.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("suite", "agent"),
    [("agentdojo:slack", "oracle"), ("bfcl:live_parallel", "oracle"), ("tau2:telecom", "noop")],
)
def test_a_run_with_faults_none_equals_a_run_without(
    suite: str, agent: str, tmp_path: Path
) -> None:
    installed(*NEEDS[suite.partition(":")[0]])
    runs: list[object] = []
    for faults in (None, "none"):
        settings = {"suite": suite, "agents": (agent,), "engine": "inline", "faults": faults}
        folder = start_run(run_config(settings), tmp_path / str(faults), SILENT)
        digests = {str(row.name): row.trace_digest for row in folder.rows()}
        runs.append(
            (digests, folder.manifest()["suite_digest"], (folder.path / "suite.jsonl").read_bytes())
        )
    assert runs[0] == runs[1]


def _with_region(move: Move) -> Move:
    if "tool_name" not in move:
        return move
    args = move["args"]
    assert isinstance(args, dict)
    return {**move, "args": {**args, "region": "eu"}}

"""Faults behind the tools of public benchmarks: they strike, and the original criterion decides all the same.

Four tasks of every kind, through one real service: under a rate limit, a timeout and a drift of the interface
the oracle copes, and under another timeout it does not.
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
    """Take no notice."""
    return moves


@dataclass(frozen=True)
class Trouble:
    """A plan of faults, and how the oracle meets it."""

    plan: str
    met: Callable[[Moves], Moves]


TROUBLES = {
    "rate limit": Trouble("{family: rate_limit, trigger: {on_nth_call: 1}}", again),
    "timeout": Trouble("{family: timeout, trigger: {on_nth_call: 1}}", again),
    "drift": Trouble("{family: schema_drift, payload: {add_required: {region: eu}}}", with_region),
    "unmet": Trouble("{family: timeout, trigger: {on_nth_call: 1}}", as_before),
}


@dataclass(frozen=True)
class Played:
    """A task, under which trouble, and what came of it."""

    trouble: str
    case: Case
    """As its benchmark has it."""
    row: EpisodeRow

    def alone(self, moves: Moves) -> Score:
        """Return what the benchmark's own criterion says of these moves where nothing strikes."""
        return score_evidence(self.case.task, self.case.gold, play_in_memory(self.case.task, moves))


@pytest.fixture(scope="module")
def played() -> Iterator[Sequence[Played]]:
    """All of it in one run."""
    with short_folder() as place:
        made = Path(place)
        make(made)
        chosen = list(_chosen(made))
        suite = Suite("faulted", tuple(case for _, case, _ in chosen))
        rows = {row.name.task: row for row in play(made / "run", suite, ("oracle",), concurrency=2)}
        yield [Played(trouble, case, rows[case.task.task_id]) for trouble, _, case in chosen]


def _chosen(made: Path) -> Iterator[tuple[str, Case, Case]]:
    """Yield the trouble, the case in it, and the case without."""
    kinds: dict[str, list[Case]] = {}
    for kind, case in slices(made, len(TROUBLES), BENCHMARKS, with_calls=True):
        kinds.setdefault(kind, []).append(case)
    for cases in kinds.values():
        for at, (name, trouble) in enumerate(TROUBLES.items()):
            case = cases[at % len(cases)]
            if at >= len(cases):
                case = replace(case, task=replace(case.task, task_id=f"{case.task.task_id}-{at}"))
            yield name, _troubled(made, trouble, case), case


def _troubled(made: Path, trouble: Trouble, case: Case) -> Case:
    file = made / "plan.yaml"
    file.write_text(f"format: fumehood.faults/1\nfaults: [{trouble.plan}]\n", encoding="utf-8")
    (faulted,) = with_faults(Suite("one", (case,)), str(file)).cases
    return replace(
        faulted, gold=replace(case.gold, oracle=tuple(trouble.met(case.gold.oracle or ())))
    )


def test_every_fault_is_delivered(played: Sequence[Played]) -> None:
    assert {each.trouble for each in played} == set(TROUBLES)
    assert [
        str(each.row.name) for each in played if each.row.score.metrics["faults_fired"] != 1
    ] == []


def test_whoever_copes_is_right_and_is_asked_the_same_as_without_faults(
    played: Sequence[Played],
) -> None:
    for each in played:
        if each.trouble != "unmet":
            alone = each.alone(each.case.gold.oracle or ())
            assert (each.row.score.success, each.row.score.checks) == (True, alone.checks), each


def test_a_call_that_was_struck_was_never_made(played: Sequence[Played]) -> None:
    for each in played:
        if each.trouble == "unmet":
            moves = [*(each.case.gold.oracle or ())]
            del moves[next(at for at, move in enumerate(moves) if "tool_name" in move)]
            alone = each.alone(moves)
            assert (each.row.score.success, each.row.score.checks) == (
                alone.success,
                alone.checks,
            ), each


# That of dbbench is told in tests/episodes/test_dbbench.py.
@pytest.mark.parametrize(
    ("suite", "agent"),
    [("agentdojo:slack", "oracle"), ("bfcl:live_parallel", "oracle"), ("tau2:telecom", "noop")],
)
def test_no_faults_is_the_benchmark_alone(suite: str, agent: str, tmp_path: Path) -> None:
    installed(*NEEDS[suite.partition(":")[0]])
    told: list[object] = []
    for faults in (None, "none"):
        settings = {"suite": suite, "agents": (agent,), "engine": "process", "faults": faults}
        folder = start_run(run_config(settings), tmp_path / str(faults), SILENT)
        digests = {str(row.name): row.trace_digest for row in folder.rows()}
        told.append(
            (digests, folder.manifest()["suite_digest"], (folder.path / "suite.jsonl").read_bytes())
        )
    assert told[0] == told[1]


def _with_region(move: Move) -> Move:
    if "tool_name" not in move:
        return move
    args = move["args"]
    assert isinstance(args, dict)
    return {**move, "args": {**args, "region": "eu"}}

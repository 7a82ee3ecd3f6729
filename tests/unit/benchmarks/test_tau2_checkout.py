"""τ²-bench with the tools of a checkout, which run in the checker's process."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from fumehood.benchmarks.registry import load_suite
from fumehood.benchmarks.shared.in_memory import Move, play_in_memory
from fumehood.core.errors import SpecError
from fumehood.core.evidence import Evidence
from fumehood.core.task import Case
from fumehood.scorers.registry import score_evidence
from tests.parts.folders import short_folder
from tests.parts.installed import installed
from tests.parts.tau2_checkout import write_tau2_checkout

installed("inspect_evals")

UNLOCK: Move = {"seat": "agent", "tool_name": "unlock", "args": {"name": "look_up_1234"}}
READ: Move = {
    "seat": "agent",
    "tool_name": "call_discoverable_agent_tool",
    "args": {"agent_tool_name": "look_up_1234", "arguments": "{}"},
}
RENAME: Move = {"seat": "user", "tool_name": "rename", "args": {"user_id": "u1", "name": "Bo"}}
HELLO: Move = {"seat": "user", "submit": "Hello."}
BYE: tuple[Move, ...] = (
    {"seat": "agent", "submit": "Done."},
    {"seat": "user", "submit": "###STOP###"},
)
GOLD_RENAME: dict[str, object] = {
    "name": "rename",
    "requestor": "user",
    "arguments": RENAME["args"],
}
GOLD_READS: list[dict[str, object]] = [
    {"name": str(move["tool_name"]), "arguments": move["args"]} for move in (UNLOCK, READ)
]


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that all users can read."""
    with short_folder() as folder:
        yield Path(folder)


def case_of(place: Path, actions: list[dict[str, object]]) -> Case:
    folder = write_tau2_checkout(place / "checkout", actions)
    (case,) = load_suite(f"tau2:banking:{folder}").cases
    return case


def play(case: Case, *moves: Move) -> tuple[Evidence, bool | None]:
    evidence = play_in_memory(case.task, moves)
    return evidence, score_evidence(case.task, case.gold, evidence).success


@pytest.mark.slow
def test_the_tools_of_the_checkout_are_offered_without_those_that_an_agent_discovers(
    place: Path,
) -> None:
    agent, user = case_of(place, []).task.seats
    assert agent.tools == ("unlock", "call_discoverable_agent_tool", "grep")
    assert user.tools == ("rename",)


def test_the_state_of_the_tools_continues_from_call_to_call(place: Path) -> None:
    case = case_of(place, [GOLD_RENAME])
    evidence, success = play(case, RENAME, HELLO, READ, UNLOCK, READ, *BYE)
    assert success is True, "a read that is not in the gold does not count"
    outputs = [
        call.output["result"] if call.output else call.failure and call.failure.message
        for call in evidence.calls
    ]
    assert outputs == ['"True"', "it is locked", '{"unlocked": "1"}', "called with {}"]
    assert evidence.final_state["changes"] == [
        {"path": ["users", "data", "u1", "name"], "value": "Bo"}
    ]
    assert play(case, HELLO, *BYE)[1] is False
    assert play(case, *(case.gold.oracle or ()))[1] is True


def test_a_read_in_the_gold_is_part_of_the_database(place: Path) -> None:
    case = case_of(place, GOLD_READS)
    assert case.task.initial_state["logged_reads"] == ["look_up_1234"]
    assert play(case, HELLO, UNLOCK, READ, *BYE)[1] is True
    assert play(case, HELLO, UNLOCK, *BYE)[1] is False


def test_a_checkout_that_cannot_be_imported_is_rejected_in_one_line(place: Path) -> None:
    folder = write_tau2_checkout(place / "checkout", [])
    shutil.rmtree(place / "checkout" / "src" / "tau2" / "environment")
    with pytest.raises(SpecError, match=r"must be a checkout that all users can read") as error:
        load_suite(f"tau2:banking:{folder}")
    assert "\n" not in str(error.value)

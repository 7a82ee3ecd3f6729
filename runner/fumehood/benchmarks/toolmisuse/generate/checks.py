"""Checks every generated task before it is written: its consistency and its claim to be solvable
or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fumehood.benchmarks.shared.in_memory import play_in_memory
from fumehood.benchmarks.shared.proof import (
    ScoreEpisode,
    Unproven,
    noop_moves,
    prove_not_free,
    prove_solvable,
)
from fumehood.benchmarks.shared.records import opened
from fumehood.benchmarks.toolmisuse.generate.faults import fires_on_every_call
from fumehood.benchmarks.toolmisuse.records import OracleRecord, TaskRecord
from fumehood.benchmarks.toolmisuse.tasks import case_of, refuse_unusable_criteria
from fumehood.core.errors import SpecError
from fumehood.core.task import Case
from fumehood.worlds.scheduling import is_valid_cron

_KEYS_BY_OP: Mapping[str, frozenset[str]] = {
    "equals": frozenset({"op", "path", "value"}),
    "in": frozenset({"op", "path", "value"}),
    "map_value_equals": frozenset({"op", "path", "key", "value"}),
    "successful_tool_call": frozenset({"op", "tool_name", "min_count"}),
    "tool_output_path_equals": frozenset({"op", "tool_name", "output_path", "value"}),
}
"""Operation → keys, for the operations that generated tasks use."""


def refuse_incoherent(
    record: TaskRecord, oracle: OracleRecord, score_episode: ScoreEpisode | None
) -> None:
    """Raise for a task that must not be published.

    Args:
        record: the task.
        oracle: its moves, and the claim that the task is solvable or not.
        score_episode: scores evidence; None skips the checks that play the task.

    Raises:
        Unproven: names the task and what is wrong with it.
    """
    try:
        refuse_unusable_criteria(record.success_criteria)
        case = opened(case_of(record, oracle))
    except SpecError as error:
        raise Unproven(record.task_id, str(error)) from None
    for problem in _problems(record, oracle):
        raise Unproven(record.task_id, problem)
    if score_episode is None:
        return
    prove_not_free(case, score_episode)
    if oracle.solvable:
        prove_solvable(case, score_episode)
    else:
        _prove_unsolvable(case, record, score_episode)


def _prove_unsolvable(case: Case, record: TaskRecord, score_episode: ScoreEpisode) -> None:
    """Raise unless no sequence of calls can succeed.

    If a fault makes every call fail, the state never changes. A check that fails without any call
    can then never hold, except ``tool_call``, which also counts failed calls. A fault of one tool
    is sufficient if a criterion requires a successful call of this tool.
    """
    required = {
        criterion.get("tool_name")
        for criterion in record.success_criteria
        if criterion["op"] == "successful_tool_call"
    }
    if not any(
        fires_on_every_call(fault) and fault.trigger.get("on_tool") in {None, *required}
        for fault in record.fault_plan
    ):
        raise Unproven(
            record.task_id, "it is labelled unsolvable, but no fault makes every call fail"
        )
    evidence = play_in_memory(case.task, noop_moves(case.task))
    checks = score_episode(case.task, case.gold, evidence).checks
    if all(holds or name.endswith(":tool_call") for name, holds in checks.items()):
        raise Unproven(
            record.task_id, "it is labelled unsolvable, but failed calls may be sufficient"
        )
    evidence = play_in_memory(case.task, case.gold.oracle or ())
    if not all(evidence.fire_counts):
        rule = evidence.fire_counts.index(0)
        raise Unproven(record.task_id, f"fault_plan[{rule}] never fires")


def _problems(record: TaskRecord, oracle: OracleRecord) -> Iterator[str]:
    yield from _instruction_problems(record, oracle)
    yield from _STATE_PROBLEMS[record.domain](record.initial_state)
    for index, criterion in enumerate(record.success_criteria):
        if criterion.keys() != _KEYS_BY_OP.get(str(criterion.get("op"))):
            yield f"success_criteria[{index}] is malformed: {criterion}"
    failures = sum("tool_name" in move for move in oracle.oracle) - 1
    if oracle.solvable and failures > record.budget.max_retries:
        tolerated = record.budget.max_retries
        yield f"{failures} failures are necessary, but only {tolerated} are tolerated"


def _instruction_problems(record: TaskRecord, oracle: OracleRecord) -> Iterator[str]:
    if not record.instruction.strip():
        yield "the instruction is empty"
    for name, value in oracle.oracle[0].get("args", {}).items():
        if isinstance(value, str) and value not in record.instruction:
            yield f"the instruction does not contain {name} {value!r}"


def _account_problems(state: Mapping[str, Any]) -> Iterator[str]:
    for name, account in state.get("accounts", {}).items():
        if account["id"] != name:
            yield f"account {name} has the id {account['id']}"


def _document_problems(state: Mapping[str, Any]) -> Iterator[str]:
    yield from _duplicates([document["id"] for document in state.get("docs", [])], "document")


def _file_problems(state: Mapping[str, Any]) -> Iterator[str]:
    for path, content in state.get("files", {}).items():
        if not path.startswith("/") or not isinstance(content, str):
            yield f"file {path!r} is not a string with an absolute path"


def _job_problems(state: Mapping[str, Any]) -> Iterator[str]:
    names = [job["name"] for job in state.get("jobs", [])]
    yield from _duplicates(names, "job")
    if names != sorted(names):
        yield "the jobs are not sorted by name"
    yield from (
        f"job {job['name']} has an invalid cron expression"
        for job in state.get("jobs", [])
        if not is_valid_cron(job["cron"])
    )


def _duplicates(names: Sequence[str], kind: str) -> Iterator[str]:
    if len(set(names)) < len(names):
        yield f"a {kind} occurs twice"


_STATE_PROBLEMS: Mapping[str, Callable[[Mapping[str, Any]], Iterator[str]]] = {
    "crud": _account_problems,
    "retrieval": _document_problems,
    "files": _file_problems,
    "scheduling": _job_problems,
}

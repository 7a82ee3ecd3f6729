"""Gives each task to a supervisor and its workers, which share the budget of one agent."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fumehood.core.conversation import ConversationSpec
from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InputError
from fumehood.core.json_values import Json
from fumehood.core.ledger import Budget, BudgetKind, ChargedBy
from fumehood.core.policy import SEAT, entries_by_check, gate_paths, rule_paths
from fumehood.core.task import Case, Suite, Task

HEAD_INSTRUCTION = """\


You lead a team: {workers}. The members have your tools and share your environment. To give work \
to a member, submit `@name: text`. The answer of the member is your next message. Any other text \
that you submit is the final answer."""
WORKER_INSTRUCTION = """\
You are {name}, a member of a team that {head} leads. Carry out each order with your tools. Then \
submit the result as text."""
PART_ORDER = ": Do your part."
"""End of the order by which the oracle gives a worker its calls."""


def with_team(suite: Suite, workers: int) -> Suite:
    """Return the suite with a supervisor and workers in place of the agent of each task.

    Each bound of the task is divided among the seats; the supervisor gets the remainder. The bound
    of the wall time is not divided, because a seat is not charged while it waits.

    Raises:
        InputError: a task has several seats, several messages of a user, or a policy that names
            or distinguishes seats.
    """
    names = [f"worker{number}" for number in range(1, workers + 1)]
    return replace(suite, cases=tuple(_with_workers(case, names) for case in suite.cases))


def without_team(task: Task) -> Task:
    """Return the task of one agent from which :func:`with_team` made this task."""
    head, *workers = task.seats
    bounds = {
        kind.value: limit + sum(worker.budget[kind] or 0 for worker in workers)
        for kind, limit in _divisible(head.budget).items()
    }
    suffix = _order([worker.name for worker in workers])
    agent = replace(
        head,
        instruction=head.instruction.removesuffix(suffix),
        budget=head.budget.with_limits(**bounds),
    )
    changed: Task = replace(task, seats=(agent,), conversation=None)
    return changed


def without_teams(suite: Suite) -> Suite:
    """Return the suite of one agent from which :func:`with_team` made this suite."""
    cases = (
        Case(without_team(case.task), replace(case.gold, oracle=_joined_moves(case.gold.oracle)))
        for case in suite.cases
    )
    return replace(suite, cases=tuple(cases))


def _with_workers(case: Case, names: Sequence[str]) -> Case:
    task = case.task
    if len(task.seats) > 1 or task.seats[0].further_turns or task.conversation:
        raise InputError(
            f"team: task {task.task_id} has several seats or several messages of the user; "
            "remove `team`, or select other tasks with `tasks`"
        )
    if any("seats" in entry for entry in entries_by_check(task.policy).values()):
        raise InputError(
            f"team: the policy of task {task.task_id} names seats, so it would not concern the "
            "workers; remove `team` or `seats`, or select other tasks with `tasks`"
        )
    if checks := _checks_of_seats(task.policy):
        raise InputError(
            f"team: the policy of task {task.task_id} distinguishes seats in {', '.join(checks)}, "
            "and any member of a team could make the calls; remove `team` or these entries, or "
            "select other tasks with `tasks`"
        )
    seat = task.seats[0]
    of_head, share = divided(seat.budget, len(names))
    head = replace(seat, instruction=seat.instruction + _order(names), budget=of_head)
    workers = (
        SeatSpec(
            name=name,
            instruction=WORKER_INSTRUCTION.format(name=name, head=seat.name),
            budget=share,
            tools=seat.tools,
        )
        for name in names
    )
    seats = (head, *workers)
    conversation = ConversationSpec("supervisor", {"head": seat.name})
    changed: Task = replace(task, seats=seats, conversation=conversation)
    return Case(changed, replace(case.gold, oracle=_divided_moves(case.gold.oracle, names, share)))


def _checks_of_seats(policy: Mapping[str, Any]) -> list[str]:
    """Return the names of the entries whose check depends on the seat that calls."""
    return [
        f"`{entry['name']}`"
        for key in ("rules", "gates")
        for entry in policy.get(key, ())
        if entry.get("rule") == "separate"
        or entry.get("by", "any_seat") != "any_seat"
        or SEAT in (*rule_paths({key: [entry]}), *gate_paths({key: [entry]}))
    ]


def _order(workers: Sequence[str]) -> str:
    return HEAD_INSTRUCTION.format(workers=", ".join(workers))


def _divisible(budget: Budget) -> Mapping[BudgetKind, int]:
    return {
        kind: limit
        for kind, limit in budget.limits.items()
        if kind.charged_by is not ChargedBy.CLOCK
    }


def divided(budget: Budget, workers: int) -> tuple[Budget, Budget]:
    """Return the budget of a supervisor, and that of each of its workers."""
    limits = {kind.value: limit for kind, limit in _divisible(budget).items()}
    shares = {kind: limit // (workers + 1) for kind, limit in limits.items()}
    rest = {kind: limit - workers * shares[kind] for kind, limit in limits.items()}
    return budget.with_limits(**rest), budget.with_limits(**shares)


def _joined_moves(
    moves: Sequence[Mapping[str, Json]] | None,
) -> tuple[Mapping[str, Json], ...] | None:
    """Return the oracle's moves without orders to workers and without their answers."""
    if moves is None:
        return None
    return tuple(
        {key: value for key, value in move.items() if key != "seat"}
        for move in moves
        if "tool_name" in move or not ("seat" in move or _is_order(move))
    )


def _is_order(move: Mapping[str, Json]) -> bool:
    return str(move.get("submit")).startswith("@") and str(move["submit"]).endswith(PART_ORDER)


def _divided_moves(
    moves: Sequence[Mapping[str, Json]] | None, names: Sequence[str], share: Budget
) -> tuple[Mapping[str, Json], ...] | None:
    """Return the oracle's moves: workers make its calls, and the head makes the other moves.

    Args:
        moves: moves of the oracle without a team.
        names: names of the workers.
        share: budget of each worker; the head also makes the calls that exceed it.
    """
    if moves is None:
        return None
    calls = [move for move in moves if "tool_name" in move]
    bounds = [share[kind] for kind in (BudgetKind.STEPS, BudgetKind.CALLS)]
    per_worker = min(
        math.ceil(len(calls) / len(names)),
        *(len(calls) if bound is None else bound for bound in bounds),
    )
    divided: list[Mapping[str, Json]] = []
    for at, name in enumerate(names):
        own_calls = calls[at * per_worker : (at + 1) * per_worker]
        if own_calls:
            divided.append({"submit": f"@{name}{PART_ORDER}"})
            divided += ({**call, "seat": name} for call in own_calls)
            divided.append({"seat": name, "submit": "Done."})
    return (*divided, *calls[per_worker * len(names) :], *moves[len(calls) :])

"""Scores BFCL with its own checkers, from the calls of its functions and of unknown functions."""

from __future__ import annotations

from collections import Counter

from fumehood.core.evidence import AnsweredCall, Evidence, ReceivedCall
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.ledger import BudgetKind
from fumehood.core.outcome import Finished, OutOfBudget
from fumehood.core.score import Score
from fumehood.core.task import Task
from fumehood.core.tools import FailureKind
from fumehood.scorers.native import NativeScorer, task_metrics
from fumehood.third_party.process import checker

CHATS = "bfcl_chats"
"""Conversations before a question; there is nothing to score."""
STEPS_PER_TURN = 20
"""Model messages with calls. Source: ``bfcl_eval.constants.default_prompts.MAXIMUM_STEP_LIMIT``."""


class Bfcl:
    """Scorer of BFCL: success is an answer in every turn and calls that BFCL's checker accepts."""

    def score(self, task: Task, gold: Gold, evidence: Evidence) -> Score:
        """Return the score; ``error_type`` of BFCL's checker is a metric."""
        criterion = next(
            (item for item in gold.criteria if str(item.get("op")).startswith("bfcl_")), None
        )
        if criterion is None:
            return NativeScorer().score(task, gold, evidence)
        seat = task.seats[0]
        answered = len(evidence.turn_answers.get(seat.name, ())) + _has_answered(task, evidence)
        checks = {
            "answered_every_turn": answered == 1 + len(seat.further_turns),
            "steps_per_turn": _steps_max(evidence) <= STEPS_PER_TURN,
        }
        error: Json = None
        if criterion["op"] == CHATS:
            return Score(None, checks, {"ungraded": "the conversation asks no question"})
        if all(checks.values()):
            verdict = _ask(task, dict(criterion), evidence)
            checks[str(criterion["op"])] = verdict["valid"] is True
            error = verdict["error_type"]
        success = all(checks.values())
        return Score(
            success, checks, {**task_metrics(task, evidence, success), "error_type": error}
        )


def _has_answered(task: Task, evidence: Evidence) -> bool:
    """Return whether the last turn was answered: with a text, or with the only model message."""
    seat = task.seats[0]
    end = evidence.ends.get(seat.name)
    is_only_message = BudgetKind.MODEL_CALLS in seat.budget.limits
    return isinstance(end, Finished) or (
        is_only_message
        and end == OutOfBudget(BudgetKind.MODEL_CALLS)
        and evidence.model_replies.get(seat.name, 0) > 0
    )


def _steps_max(evidence: Evidence) -> int:
    """Return the largest number of model messages with calls in one turn.

    All calls of an agent that sends no model requests count as one message.
    """
    messages = {(call.turn, call.model_calls_before) for call in evidence.calls}
    return max(Counter(turn for turn, _ in messages).values(), default=0)


def _ask(task: Task, criterion: JsonObject, evidence: Evidence) -> JsonObject:
    if criterion["op"] in {"bfcl_memory", "bfcl_format", "bfcl_web_search"}:
        end = evidence.ends[task.seats[0].name]
        return checker("bfcl").ask(
            {**criterion, "answer": end.answer if isinstance(end, Finished) else ""}
        )
    calls = list(evidence.received_calls(_is_invented))
    if criterion["op"] == "bfcl_multi_turn":
        turns: list[Json] = [
            [_call(call) for call in calls if call.during.turn == number]
            for number in range(1, 2 + len(task.seats[0].further_turns))
        ]
        entry: JsonObject = {**task.initial_state, "id": task.task_id}
        return checker("bfcl").ask({**criterion, "turns": turns, "entry": entry})
    if criterion["op"] == "bfcl_relevance":
        # A call that a fault holds back for good is a call, too.
        is_calling = bool(calls) or any(call.is_held for call in evidence.calls)
        return {"valid": is_calling == criterion["calls"], "error_type": None}
    functions = task.initial_state["functions"]
    return checker("bfcl").ask(
        {"functions": functions, **criterion, "calls": [_call(call) for call in calls]}
    )


def _is_invented(call: AnsweredCall) -> bool:
    """Return whether the call names no tool of the turn. BFCL's checkers count such calls."""
    if call.failure is None:
        return False
    code = call.failure.code
    if call.failure.kind is FailureKind.OUT_OF_BUDGET and not call.fired_rules:
        # The failure that exhausts the retries replaces the original one.
        code = str(call.failure.details.get("original_error_code"))
    elif call.failure.kind is not FailureKind.INVALID_CALL:
        return False
    return code == "unknown_tool"


def _call(received: ReceivedCall) -> list[Json]:
    # An invented name never reaches Python's built-in functions in BFCL's executor.
    name = received.call.tool_name
    return [name if received.is_reached else f"({name})", dict(received.arguments)]

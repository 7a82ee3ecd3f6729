"""Computes τ²-bench's reward: the product of the parts that a task's reward basis names.

The state contains the phone's status, which the world computed; the assertions compare it as the
original's do. A judge decides assertions in natural language.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fumehood.core.errors import SpecError
from fumehood.core.evidence import Evidence
from fumehood.core.gold import Gold
from fumehood.core.json_values import canonical_json
from fumehood.core.outcome import Finished
from fumehood.core.score import Score
from fumehood.core.task import Task
from fumehood.scorers.criteria import Criterion
from fumehood.scorers.judges.question import YES_NO, Opinion, Question, judged_score
from fumehood.scorers.judges.transcript import transcript_of
from fumehood.scorers.native import NativeScorer, task_metrics

OPS = ("assertion", "action", "database", "communicate", "opinion", "talked")
OPINION = "opinion"
ASKS = (
    "An agent serves a customer. Is the following statement true of the agent's behaviour "
    "and its result? {text}"
)
EPSILON = 1e-6
STEPS_MAX = 200
"""A conversation with this many steps fails. A text is one step; a message with calls is one, and
their execution is another."""
ERRORS_MAX = 10
"""A conversation with this many failed calls of both seats fails."""

State = Mapping[str, Any]
Holds = Callable[[State, Mapping[str, Any]], bool]


class Tau2:
    """Scorer of τ²-bench: success is a proper end and all parts of the reward basis."""

    def score(self, task: Task, gold: Gold, evidence: Evidence) -> Score:
        """Return the score that rules decide."""
        return self.score_with(task, gold, evidence, {})

    def questions(self, task: Task, gold: Gold, evidence: Evidence) -> Sequence[Question]:
        """Return a question for each assertion in natural language, unless a rule has failed
        already."""
        questions = [
            Question(
                name=name,
                asks=ASKS.format(text=criterion.get("text")),
                texts={"conversation": transcript_of(evidence)},
            )
            for name, criterion in _named(gold)
            if criterion.get("op") == OPINION
        ]
        return (
            questions
            if questions and False not in _checks(task, gold, evidence, {}).values()
            else ()
        )

    def score_with(
        self, task: Task, gold: Gold, evidence: Evidence, opinions: Mapping[str, Opinion]
    ) -> Score:
        """Return the score and the native metrics."""
        if not any(item.get("op") in OPS for item in gold.criteria):
            return NativeScorer().score(task, gold, evidence)
        checks = _checks(task, gold, evidence, opinions)
        success = all(checks.values())
        return judged_score(checks, opinions.values(), task_metrics(task, evidence, success))


def _named(gold: Gold) -> list[tuple[str, Criterion]]:
    return [
        (f"check_{index}:{item.get('func_name') or item.get('name') or item.get('op')}", item)
        for index, item in enumerate(gold.criteria)
    ]


def _checks(
    task: Task, gold: Gold, evidence: Evidence, opinions: Mapping[str, Opinion]
) -> dict[str, bool | None]:
    errors = sum(call.failure is not None for call in evidence.calls)
    checks: dict[str, bool | None] = {
        "end:steps": count_steps(evidence) < STEPS_MAX,
        "end:errors": errors < ERRORS_MAX,
    }
    if task.conversation is None:
        checks["end:submitted"] = isinstance(evidence.ends.get(task.seats[0].name), Finished)
    for name, criterion in _named(gold):
        if criterion.get("op") == OPINION:
            answer = opinions[name].answer if name in opinions else None
            checks[name] = None if answer is None else answer == YES_NO[0]
        else:
            checks[name] = _holds(name, criterion, task, evidence)
    return checks


def count_steps(evidence: Evidence) -> int:
    """Return the number of steps of both seats. Source: ``Orchestrator.step`` of the original.

    The calls of one model message are executed in one step. Every call of a seat that sends no
    model requests counts as a message.
    """
    messages = {
        (call.seat, call.turn, call.model_calls_before or -number)
        for number, call in enumerate(evidence.calls, 1)
    }
    return 2 * len(messages) + len(evidence.submissions)


def _holds(name: str, criterion: Criterion, task: Task, evidence: Evidence) -> bool:
    match criterion:
        case {"op": "talked"}:
            return _was_ended_by_user(task, evidence)
        case {"op": "database", "equals": dict(expected)}:
            actual = {key: evidence.final_state.get(key) for key in expected}
            return canonical_json(actual) == canonical_json(expected)
        case {"op": "communicate", "text": str(text)}:
            agent = task.seats[0].name
            messages = [message.text for message in evidence.submissions if message.seat == agent]
            return any(text.lower() in message.lower().replace(",", "") for message in messages)
        case {"op": "action", "name": str(tool), "arguments": dict(expected)}:
            compared = criterion.get("compare_args")
            calls = [
                dict(call.arguments_after) for call in evidence.calls if call.tool_name == tool
            ]
            return any(_have_same_arguments(call, expected, compared) for call in calls)
        case {"op": "assertion", "func_name": str(assertion), "arguments": dict(arguments)} if (
            assertion in ASSERTIONS
        ):
            try:
                result = ASSERTIONS[assertion](evidence.final_state, arguments)
            except (KeyError, TypeError, StopIteration):
                # The original raises an error for an assertion about a missing object.
                return False
            return result == criterion.get("assert_value", True)
    raise SpecError(f"criteria: {name}", f"unknown criterion {dict(criterion)!r}")


def _was_ended_by_user(task: Task, evidence: Evidence) -> bool:
    """Return whether a stop text ended the conversation, rather than a limit."""
    stop = task.conversation.settings.get("stop") if task.conversation else None
    last = evidence.submissions[-1] if evidence.submissions else None
    texts = stop.get(last.seat) if last and isinstance(stop, dict) else None
    return isinstance(texts, list) and any(str(text) in last.text for text in texts if last)


def _have_same_arguments(
    actual: Mapping[str, Any], expected: Mapping[str, Any], compared: object
) -> bool:
    # As in the original: if a task names no arguments, those of the call are compared.
    keys = compared if isinstance(compared, list) else list(actual)
    return all(
        (key in actual) == (key in expected) and actual.get(key) == expected.get(key)
        for key in keys
    )


def _device(field: str) -> Holds:
    return lambda state, arguments: bool(
        state["user"]["device"][field] == arguments["expected_status"]
    )


def _seen(field: str) -> Holds:
    return lambda state, arguments: bool(state["seen"][field] == arguments["expected_status"])


def _speed(state: State, arguments: Mapping[str, Any]) -> bool:
    seen, description = state["seen"], arguments.get("expected_desc")
    return bool(
        seen["speed_mbps"] >= arguments["expected_speed"] and description in (None, seen["speed"])
    )


def _find(state: State, kind: str, key: str, value: object) -> Mapping[str, Any]:
    match: Mapping[str, Any] = next(item for item in state["agent"][kind] if item[key] == value)
    return match


def _line(state: State, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    customer = _find(state, "customers", "customer_id", arguments["customer_id"])
    if arguments["line_id"] not in customer["line_ids"]:
        raise KeyError(arguments["line_id"])
    return _find(state, "lines", "line_id", arguments["line_id"])


def _of_mock(kind: str, key: str) -> Holds:
    side = "user" if kind == "notifications" else "agent"
    return lambda state, arguments: bool(
        state[side][kind][arguments[key]]["status"] == arguments["expected_status"]
    )


def _refuelled(state: State, arguments: Mapping[str, Any]) -> bool:
    return bool(
        abs(_line(state, arguments)["data_refueling_gb"] - arguments["expected_amount"]) < EPSILON
    )


def _overdue(state: State, arguments: Mapping[str, Any]) -> bool:
    customer = _find(state, "customers", "customer_id", arguments["customer_id"])
    bill = _find(state, "bills", "bill_id", arguments["overdue_bill_id"])
    return arguments["overdue_bill_id"] in customer["bill_ids"] and bool(
        bill["status"] == "Overdue"
    )


def _not_overdue(state: State, arguments: Mapping[str, Any]) -> bool:
    bills = [
        bill for bill in state["agent"]["bills"] if bill["bill_id"] == arguments["overdue_bill_id"]
    ]
    return all(bill["status"] == "Paid" for bill in bills)


ASSERTIONS: Mapping[str, Holds] = {
    "assert_airplane_mode_status": _device("airplane_mode"),
    "assert_can_send_mms": _seen("can_send_mms"),
    "assert_data_refueling_amount": _refuelled,
    "assert_internet_not_excellent": lambda state, arguments: bool(
        state["seen"]["speed"] != "excellent"
    ),
    "assert_internet_speed": _speed,
    "assert_line_status": lambda state, arguments: bool(
        _line(state, arguments)["status"] == arguments["expected_status"]
    ),
    "assert_mobile_data_saver_mode_status": _device("data_saver_mode"),
    "assert_mobile_data_status": _seen("mobile_data_working"),
    "assert_mobile_data_usage_exceeded": lambda state, arguments: bool(
        state["user"]["surroundings"]["mobile_data_usage_exceeded"] == arguments["expected_status"]
    ),
    "assert_mobile_roaming_status": _device("roaming_enabled"),
    "assert_no_overdue_bill": _not_overdue,
    "assert_notification_status": _of_mock("notifications", "notification_id"),
    "assert_number_of_tasks": lambda state, arguments: bool(
        len(state["agent"]["users"][arguments["user_id"]]["tasks"]) == arguments["expected_number"]
    ),
    "assert_overdue_bill_exists": _overdue,
    "assert_service_status": _device("network_connection_status"),
    "assert_task_status": _of_mock("tasks", "task_id"),
}
"""Source: the original's assertion methods of both sides."""

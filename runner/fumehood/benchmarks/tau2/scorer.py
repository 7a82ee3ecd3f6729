"""τ²-bench's reward: the product of the parts that a task's reward basis names, over what the trace holds.

The package works out what a look at the phone shows while the world lives; here it is only compared, as the
original's assertions compare it. An assertion in words is put to a judge.
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

OWN = ("assertion", "action", "database", "communicate", "opinion", "talked")
OPINION = "opinion"
ASKS = (
    "An agent serves a customer. Is the following true of the agent and of what came of it? {text}"
)
EPSILON = 1e-6

State = Mapping[str, Any]
Holds = Callable[[State, Mapping[str, Any]], bool]


class Tau2:
    """Success is that the work came to its end and that all of the reward basis holds."""

    def score(self, task: Task, gold: Gold, evidence: Evidence) -> Score:
        """Return the verdict as far as rules decide it."""
        return self.score_with(task, gold, evidence, {})

    def questions(self, task: Task, gold: Gold, evidence: Evidence) -> Sequence[Question]:
        """Ask about each assertion in words, unless a rule has decided already."""
        asked = [
            Question(
                name=name,
                asks=ASKS.format(text=criterion.get("text")),
                texts={"conversation": transcript_of(evidence)},
            )
            for name, criterion in _named(gold)
            if criterion.get("op") == OPINION
        ]
        return asked if asked and False not in _checks(task, gold, evidence, {}).values() else ()

    def score_with(
        self, task: Task, gold: Gold, evidence: Evidence, opinions: Mapping[str, Opinion]
    ) -> Score:
        """Return the verdict and the native metrics."""
        if not any(each.get("op") in OWN for each in gold.criteria):
            return NativeScorer().score(task, gold, evidence)
        checks = _checks(task, gold, evidence, opinions)
        success = all(checks.values())
        return judged_score(checks, opinions.values(), task_metrics(task, evidence, success))


def _named(gold: Gold) -> list[tuple[str, Criterion]]:
    return [
        (f"check_{index}:{each.get('func_name') or each.get('name') or each.get('op')}", each)
        for index, each in enumerate(gold.criteria)
    ]


def _checks(
    task: Task, gold: Gold, evidence: Evidence, opinions: Mapping[str, Opinion]
) -> dict[str, bool | None]:
    checks: dict[str, bool | None] = {}
    if task.conversation is None:
        checks["end:submitted"] = isinstance(evidence.ends.get(task.seats[0].name), Finished)
    for name, criterion in _named(gold):
        if criterion.get("op") == OPINION:
            said = opinions[name].answer if name in opinions else None
            checks[name] = None if said is None else said == YES_NO[0]
        else:
            checks[name] = _holds(name, criterion, task, evidence)
    return checks


def _holds(name: str, criterion: Criterion, task: Task, evidence: Evidence) -> bool:
    match criterion:
        case {"op": "talked"}:
            return _talked(task, evidence)
        case {"op": "database", "equals": dict(wanted)}:
            found = {key: evidence.final_state.get(key) for key in wanted}
            return canonical_json(found) == canonical_json(wanted)
        case {"op": "communicate", "text": str(text)}:
            told = [one.text for one in evidence.said if one.seat == task.seats[0].name]
            return any(text.lower() in words.lower().replace(",", "") for words in told)
        case {"op": "action", "name": str(tool), "arguments": dict(given)}:
            compared = criterion.get("compare_args")
            made = [dict(call.delivered) for call in evidence.exchanges if call.tool_name == tool]
            return any(_same(arguments, given, compared) for arguments in made)
        case {"op": "assertion", "func_name": str(assertion), "arguments": dict(given)} if (
            assertion in ASSERTIONS
        ):
            try:
                found_to_be = ASSERTIONS[assertion](evidence.final_state, given)
            except (KeyError, TypeError, StopIteration):
                # An assertion about what is not there fails, where the original raises.
                return False
            return found_to_be == criterion.get("assert_value", True)
    raise SpecError(f"criteria: {name}", f"is none that is known: {dict(criterion)!r}")


def _talked(task: Task, evidence: Evidence) -> bool:
    """Tell whether the conversation ended with words that end it, and not with a bound."""
    stop = task.conversation.settings.get("stop") if task.conversation else None
    last = evidence.said[-1] if evidence.said else None
    words = stop.get(last.seat) if last and isinstance(stop, dict) else None
    return isinstance(words, list) and any(str(word) in last.text for word in words if last)


def _same(given: Mapping[str, Any], wanted: Mapping[str, Any], compared: object) -> bool:
    # As the original compares: where a task names no arguments, those that the call has.
    keys = compared if isinstance(compared, list) else list(given)
    return all(
        (key in given) == (key in wanted) and given.get(key) == wanted.get(key) for key in keys
    )


def _device(field: str) -> Holds:
    return lambda state, given: bool(state["user"]["device"][field] == given["expected_status"])


def _seen(field: str) -> Holds:
    return lambda state, given: bool(state["seen"][field] == given["expected_status"])


def _speed(state: State, given: Mapping[str, Any]) -> bool:
    seen, word = state["seen"], given.get("expected_desc")
    return bool(seen["speed_mbps"] >= given["expected_speed"] and word in (None, seen["speed"]))


def _of(state: State, kind: str, key: str, wanted: object) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(each for each in state["agent"][kind] if each[key] == wanted)
    return found


def _line(state: State, given: Mapping[str, Any]) -> Mapping[str, Any]:
    customer = _of(state, "customers", "customer_id", given["customer_id"])
    if given["line_id"] not in customer["line_ids"]:
        raise KeyError(given["line_id"])
    return _of(state, "lines", "line_id", given["line_id"])


def _of_mock(kind: str, key: str) -> Holds:
    side = "user" if kind == "notifications" else "agent"
    return lambda state, given: bool(
        state[side][kind][given[key]]["status"] == given["expected_status"]
    )


def _refuelled(state: State, given: Mapping[str, Any]) -> bool:
    return bool(abs(_line(state, given)["data_refueling_gb"] - given["expected_amount"]) < EPSILON)


def _overdue(state: State, given: Mapping[str, Any]) -> bool:
    customer = _of(state, "customers", "customer_id", given["customer_id"])
    bill = _of(state, "bills", "bill_id", given["overdue_bill_id"])
    return given["overdue_bill_id"] in customer["bill_ids"] and bool(bill["status"] == "Overdue")


def _not_overdue(state: State, given: Mapping[str, Any]) -> bool:
    bills = [
        each for each in state["agent"]["bills"] if each["bill_id"] == given["overdue_bill_id"]
    ]
    return all(bill["status"] == "Paid" for bill in bills)


ASSERTIONS: Mapping[str, Holds] = {
    "assert_airplane_mode_status": _device("airplane_mode"),
    "assert_can_send_mms": _seen("can_send_mms"),
    "assert_data_refueling_amount": _refuelled,
    "assert_internet_not_excellent": lambda state, given: bool(
        state["seen"]["speed"] != "excellent"
    ),
    "assert_internet_speed": _speed,
    "assert_line_status": lambda state, given: bool(
        _line(state, given)["status"] == given["expected_status"]
    ),
    "assert_mobile_data_saver_mode_status": _device("data_saver_mode"),
    "assert_mobile_data_status": _seen("mobile_data_working"),
    "assert_mobile_data_usage_exceeded": lambda state, given: bool(
        state["user"]["surroundings"]["mobile_data_usage_exceeded"] == given["expected_status"]
    ),
    "assert_mobile_roaming_status": _device("roaming_enabled"),
    "assert_no_overdue_bill": _not_overdue,
    "assert_notification_status": _of_mock("notifications", "notification_id"),
    "assert_number_of_tasks": lambda state, given: bool(
        len(state["agent"]["users"][given["user_id"]]["tasks"]) == given["expected_number"]
    ),
    "assert_overdue_bill_exists": _overdue,
    "assert_service_status": _device("network_connection_status"),
    "assert_task_status": _of_mock("tasks", "task_id"),
}
"""Source: the original's assertion methods of both sides."""

"""τ²-bench's telecom: its assertions on the environment and its gold actions, over what the trace holds.

The package works out what a look at the phone shows while the world lives; here it is only compared, as the
original's assertions compare it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from runner.core.errors import SpecError
from runner.core.evidence import Evidence
from runner.core.gold import Gold
from runner.core.outcome import Finished
from runner.core.score import Score
from runner.core.task import Task
from runner.scorers.criteria import Criterion
from runner.scorers.native import NativeScorer, task_metrics

OWN = ("assertion", "action")
EPSILON = 1e-6

State = Mapping[str, Any]
Holds = Callable[[State, Mapping[str, Any]], bool]


class Tau2:
    """Success is that the work was submitted and that all of the reward basis holds."""

    def score(self, task: Task, gold: Gold, evidence: Evidence) -> Score:
        """Return the verdict and the native metrics."""
        if not any(each.get("op") in OWN for each in gold.criteria):
            return NativeScorer().score(task, gold, evidence)
        checks = {"end:submitted": isinstance(evidence.ends.get(task.seats[0].name), Finished)}
        for index, criterion in enumerate(gold.criteria):
            checks[f"check_{index}:{criterion.get('func_name') or criterion.get('name')}"] = _holds(
                index, criterion, evidence
            )
        success = all(checks.values())
        return Score(success, checks, task_metrics(task, evidence, success))


def _holds(index: int, criterion: Criterion, evidence: Evidence) -> bool:
    match criterion:
        case {"op": "action", "name": str(name), "arguments": dict(wanted)}:
            compared = criterion.get("compare_args")
            return any(
                call.tool_name == name and _same(dict(call.delivered), wanted, compared)
                for call in evidence.exchanges
            )
        case {"op": "assertion", "func_name": str(name), "arguments": dict(given)} if name in ASSERTIONS:
            try:
                found = ASSERTIONS[name](evidence.final_state, given)
            except (KeyError, TypeError, StopIteration):
                # An assertion about what is not there fails, where the original raises.
                return False
            return found == criterion.get("assert_value", True)
    raise SpecError(f"criteria[{index}]", f"is no assertion or action that is known: {dict(criterion)!r}")


def _same(given: Mapping[str, Any], wanted: Mapping[str, Any], compared: object) -> bool:
    if isinstance(compared, list):
        return all(given.get(key) == wanted.get(key) for key in compared)
    return given == wanted


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


def _refuelled(state: State, given: Mapping[str, Any]) -> bool:
    return bool(abs(_line(state, given)["data_refueling_gb"] - given["expected_amount"]) < EPSILON)


def _overdue(state: State, given: Mapping[str, Any]) -> bool:
    customer = _of(state, "customers", "customer_id", given["customer_id"])
    bill = _of(state, "bills", "bill_id", given["overdue_bill_id"])
    return given["overdue_bill_id"] in customer["bill_ids"] and bool(bill["status"] == "Overdue")


def _not_overdue(state: State, given: Mapping[str, Any]) -> bool:
    bills = [each for each in state["agent"]["bills"] if each["bill_id"] == given["overdue_bill_id"]]
    return all(bill["status"] == "Paid" for bill in bills)


ASSERTIONS: Mapping[str, Holds] = {
    "assert_airplane_mode_status": _device("airplane_mode"),
    "assert_can_send_mms": _seen("can_send_mms"),
    "assert_data_refueling_amount": _refuelled,
    "assert_internet_not_excellent": lambda state, given: bool(state["seen"]["speed"] != "excellent"),
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
    "assert_overdue_bill_exists": _overdue,
    "assert_service_status": _device("network_connection_status"),
}
"""Source: the original's assertion methods of both sides."""

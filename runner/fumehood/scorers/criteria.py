"""Evaluates the success criteria of ToolMisuseBench on the final state and the calls.

Source: docs/reference/toolmisuse.md, Criteria.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fumehood.core.conditions import PUBLISHED, Condition, resolve
from fumehood.core.errors import SpecError
from fumehood.core.evidence import AnsweredCall, Evidence
from fumehood.core.json_values import Json, JsonObject

Criterion = Condition


def check_all(
    criteria: Sequence[Criterion], evidence: Evidence, initial_state: JsonObject | None = None
) -> dict[str, bool]:
    """Return whether each criterion holds, by the name ``check_<index>:<op>``.

    Args:
        criteria: in the published format.
        evidence: of the episode.
        initial_state: of the task; it decides which account ids are strings.

    Raises:
        SpecError: a criterion cannot be evaluated; the reference also stops there with an error.
    """
    evidence = replace(evidence, final_state=_reference_state(evidence, initial_state or {}))
    checks: dict[str, bool] = {}
    for index, criterion in enumerate(criteria):
        try:
            holds = _check(criterion, evidence)
        except (AttributeError, OverflowError) as reason:
            raise SpecError(
                f"success_criteria[{index}]", f"cannot be evaluated: {reason}"
            ) from None
        except (KeyError, IndexError, TypeError, ValueError):
            holds = False
        checks[f"check_{index}:{criterion.get('op')}"] = holds
    return checks


def _check(criterion: Criterion, evidence: Evidence) -> bool:
    op = str(criterion.get("op"))
    if op in PUBLISHED:
        return PUBLISHED[op](criterion, evidence.final_state)
    check = _CHECKS.get(op)
    if check is None:
        # The reference resolves the path before it checks whether it knows the operation.
        resolve(evidence.final_state, criterion["path"])
        return False
    return check(criterion, evidence)


def _reference_state(evidence: Evidence, initial_state: JsonObject) -> JsonObject:
    """Return the final state with the account keys that the reference has.

    The reference keeps an account that was created with the id ``12`` under the number; in JSON,
    its key is the string ``"12"``. So ``accounts.12`` does not find it, but ``in`` with the value
    ``12`` does.
    """
    accounts, before = evidence.final_state.get("accounts"), initial_state.get("accounts")
    created = list(_created_ids(evidence))
    ids = {json.dumps(name): name for name in created if not isinstance(name, str)}
    if not ids or not isinstance(accounts, dict):
        return evidence.final_state
    strings = {*(before if isinstance(before, dict) else ()), *created}
    restored: Any = {
        key: account for key, account in accounts.items() if key not in ids or key in strings
    }
    restored |= {ids[key]: account for key, account in accounts.items() if key in ids}
    return {**evidence.final_state, "accounts": restored}


def _created_ids(evidence: Evidence) -> Iterator[str | float]:
    for call in evidence.calls:
        if call.tool_name == "create_account" and call.output is not None:
            match call.output.get("account"):
                case {"id": str() | int() | float() as name}:
                    yield name


def _tool_call(criterion: Criterion, evidence: Evidence) -> bool:
    return _has_min_count(criterion, [call for call in evidence.calls if _is_of(call, criterion)])


def _successful_tool_call(criterion: Criterion, evidence: Evidence) -> bool:
    return _has_min_count(criterion, _successful_calls(criterion, evidence))


def _has_min_count(criterion: Criterion, calls: Sequence[AnsweredCall]) -> bool:
    return len(calls) >= int(criterion.get("min_count", 1))  # type: ignore[arg-type]


def _tool_output_path_equals(criterion: Criterion, evidence: Evidence) -> bool:
    return latest_output(criterion, evidence) == [criterion.get("value")]


def latest_output(criterion: Criterion, evidence: Evidence) -> list[Json]:
    """Return the value at the path of the latest result that has it; empty if none has."""
    outputs = (
        _find(call.output, criterion) for call in reversed(_answered_calls(criterion, evidence))
    )
    return next(([value] for exists, value in outputs if exists), [])


def _tool_output_path_exists(criterion: Criterion, evidence: Evidence) -> bool:
    return any(
        _find(call.output, criterion)[1] is not None
        for call in _answered_calls(criterion, evidence)
    )


def _find(output: JsonObject | None, criterion: Criterion) -> tuple[bool, Json]:
    try:
        return True, resolve(output, criterion["output_path"])
    except (KeyError, IndexError, TypeError, ValueError):
        return False, None


def _is_of(call: AnsweredCall, criterion: Criterion) -> bool:
    return call.tool_name == criterion["tool_name"]


def _successful_calls(criterion: Criterion, evidence: Evidence) -> list[AnsweredCall]:
    return [call for call in evidence.successful_calls() if _is_of(call, criterion)]


def _answered_calls(criterion: Criterion, evidence: Evidence) -> list[AnsweredCall]:
    return [call for call in evidence.calls if _is_of(call, criterion) and call.is_answered]


_CHECKS: Mapping[str, Callable[[Criterion, Evidence], bool]] = {
    "successful_tool_call": _successful_tool_call,
    "tool_call": _tool_call,
    "tool_output_path_equals": _tool_output_path_equals,
    "tool_output_path_exists": _tool_output_path_exists,
}

"""Evaluates the success criteria of ToolMisuseBench on the final state and the calls.

Source: docs/reference/toolmisuse.md, Criteria.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from fumehood.core.errors import SpecError
from fumehood.core.evidence import Evidence, Exchange
from fumehood.core.json_values import Json, JsonObject

Criterion = Mapping[str, Json]


def check_all(criteria: Sequence[Criterion], evidence: Evidence) -> dict[str, bool]:
    """Return whether each criterion holds, by the name ``check_<index>:<op>``.

    Raises:
        SpecError: a criterion cannot be evaluated; the reference also stops there with an error.
    """
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
    op = criterion.get("op")
    check = _CHECKS.get(op) if isinstance(op, str) else None
    if check is None:
        # The reference resolves the path before it checks whether it knows the operation.
        resolve(evidence.final_state, criterion["path"])
        return False
    return check(criterion, evidence)


def resolve(value: Json, path: Json) -> Json:
    """Return the value at a dotted path of object keys and list positions, which may be negative.

    Raises:
        KeyError, IndexError, TypeError, ValueError: the path does not exist.
        AttributeError: the path is not a string.
    """
    if not isinstance(path, str):
        raise AttributeError(f"path must be a string, not {path!r}")
    for step in path.split("."):
        if isinstance(value, dict):
            value = value[step]
        elif isinstance(value, list):
            value = value[int(step)]
        else:
            raise KeyError(step)
    return value


def _equals(criterion: Criterion, evidence: Evidence) -> bool:
    return resolve(evidence.final_state, criterion["path"]) == criterion.get("value")


def _exists(criterion: Criterion, evidence: Evidence) -> bool:
    return resolve(evidence.final_state, criterion["path"]) is not None


def _in(criterion: Criterion, evidence: Evidence) -> bool:
    value, container = criterion.get("value"), resolve(evidence.final_state, criterion["path"])
    if isinstance(container, dict) and not isinstance(value, str):
        return value in _keys_of_other_types(container)
    return value in container  # type: ignore[operator]


def _keys_of_other_types(container: JsonObject) -> list[Json]:
    """Return the keys that were numbers or booleans before JSON turned them into strings.

    The reference keeps such an account under its original ID, which the account still contains.
    """
    ids = {key: entry.get("id") for key, entry in container.items() if isinstance(entry, dict)}
    return [
        name for key, name in ids.items() if not isinstance(name, str) and json.dumps(name) == key
    ]


def _map_value_equals(criterion: Criterion, evidence: Evidence) -> bool:
    entries = resolve(evidence.final_state, criterion["path"])
    return isinstance(entries, dict) and entries.get(criterion["key"]) == criterion.get("value")  # type: ignore[arg-type]


def _tool_call(criterion: Criterion, evidence: Evidence) -> bool:
    return _has_min_count(
        criterion, [call for call in evidence.exchanges if _is_of(call, criterion)]
    )


def _successful_tool_call(criterion: Criterion, evidence: Evidence) -> bool:
    return _has_min_count(criterion, _successful_calls(criterion, evidence))


def _has_min_count(criterion: Criterion, calls: Sequence[Exchange]) -> bool:
    return len(calls) >= int(criterion.get("min_count", 1))  # type: ignore[arg-type]


def _tool_output_path_equals(criterion: Criterion, evidence: Evidence) -> bool:
    for call in reversed(_successful_calls(criterion, evidence)):
        exists, value = _find(call.output, criterion)
        if exists:
            return value == criterion.get("value")
    return False


def _tool_output_path_exists(criterion: Criterion, evidence: Evidence) -> bool:
    return any(
        _find(call.output, criterion)[1] is not None
        for call in _successful_calls(criterion, evidence)
    )


def _find(output: JsonObject | None, criterion: Criterion) -> tuple[bool, Json]:
    try:
        return True, resolve(output, criterion["output_path"])
    except (KeyError, IndexError, TypeError, ValueError):
        return False, None


def _is_of(call: Exchange, criterion: Criterion) -> bool:
    return call.tool_name == criterion["tool_name"]


def _successful_calls(criterion: Criterion, evidence: Evidence) -> list[Exchange]:
    return [call for call in evidence.exchanges if _is_of(call, criterion) and call.failure is None]


_CHECKS: Mapping[str, Callable[[Criterion, Evidence], bool]] = {
    "equals": _equals,
    "exists": _exists,
    "in": _in,
    "map_value_equals": _map_value_equals,
    "successful_tool_call": _successful_tool_call,
    "tool_call": _tool_call,
    "tool_output_path_equals": _tool_output_path_equals,
    "tool_output_path_exists": _tool_output_path_exists,
}

"""The native scorer's criteria: ToolMisuseBench's eight, and those that look for what must not happen.

A criterion holds or it does not; a path that leads nowhere is one that does not hold.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fumehood.core.errors import SpecError
from fumehood.core.evidence import Evidence, Exchange
from fumehood.core.json_values import Json, JsonObject, canonical_json
from fumehood.core.outcome import Finished, GaveUp, SeatEnd
from fumehood.core.state_diff import Path, changed_paths, is_below
from fumehood.scorers.check_names import check_name
from fumehood.scorers.criteria import Criterion, check_all
from fumehood.scorers.native_opinions import JUDGED


@dataclass(frozen=True, slots=True)
class Case:
    """What a criterion may look at."""

    evidence: Evidence
    changed: tuple[Path, ...]
    """Leaves of the state that are not what they were at the start."""
    end: SeatEnd | None
    """How the first seat's work ended; None where its agent broke off."""

    @classmethod
    def of(cls, initial_state: JsonObject, evidence: Evidence, seat: str) -> Case:
        """Gather it."""
        return cls(
            evidence, changed_paths(initial_state, evidence.final_state), evidence.ends.get(seat)
        )


def check(criteria: Sequence[Criterion], case: Case) -> dict[str, bool]:
    """Return the verdict of each criterion that a rule decides, under its name.

    Raises:
        SpecError: there is no such operation; names the nearest.
    """
    return {
        check_name(index, criterion): _holds(index, criterion, case)
        for index, criterion in enumerate(criteria)
        if criterion.get("op") != JUDGED
    }


def allowed_paths(criteria: Sequence[Criterion]) -> tuple[Path, ...]:
    """Return the paths at or below which the criteria want or allow a change."""
    return tuple(path for criterion in criteria for path in _allowed(criterion))


def operations() -> tuple[str, ...]:
    """Return the name of every operation."""
    return tuple(sorted((*_CHECKS, JUDGED)))


def _holds(index: int, criterion: Criterion, case: Case) -> bool:
    op = str(criterion.get("op"))
    if op not in _CHECKS:
        near = difflib.get_close_matches(op, _CHECKS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(operations())}"
        raise SpecError(f"criteria[{index}].op", f"no operation is called {op!r}; {hint}")
    return _CHECKS[op](criterion, case)


def _as_published(criterion: Criterion, case: Case) -> bool:
    (verdict,) = check_all([criterion], case.evidence).values()
    return verdict


def _unchanged(criterion: Criterion, case: Case) -> bool:
    top = _steps(criterion.get("path", []))
    return not any(is_below(path, top) or is_below(top, path) for path in case.changed)


def _only_changed(criterion: Criterion, case: Case) -> bool:
    allowed = list(_allowed(criterion))
    return all(any(is_below(path, top) for top in allowed) for path in case.changed)


def _not_called(criterion: Criterion, case: Case) -> bool:
    return not any(_is_of(call, criterion) for call in case.evidence.exchanges)


def _called_with(criterion: Criterion, case: Case) -> bool:
    answered = [
        call for call in case.evidence.exchanges if _is_of(call, criterion) and not call.failure
    ]
    wanted = criterion.get("min_count", 1)
    return isinstance(wanted, int) and len(answered) >= wanted


def _tried_any(criterion: Criterion, case: Case) -> bool:
    patterns = criterion.get("calls")
    return isinstance(patterns, list) and any(
        _is_of(call, pattern)
        for call in case.evidence.exchanges
        for pattern in patterns
        if isinstance(pattern, dict)
    )


def _called_before(criterion: Criterion, case: Case) -> bool:
    first, second = criterion.get("first"), criterion.get("second")
    if not isinstance(first, dict) or not isinstance(second, dict):
        return False
    for call in case.evidence.exchanges:
        if _is_of(call, first) and not call.failure:
            return True
        if _is_of(call, second):
            return False
    return True


def _is_of(call: Exchange, pattern: Criterion) -> bool:
    """Tell whether a call is of the pattern's tool and has its arguments, as sent or as the tool got them.

    Both count, because under a drift of the interface the right call has arguments of other names.
    """
    arguments = pattern.get("args", {})
    return call.tool_name == pattern.get("tool_name") and (
        _contains(dict(call.sent), arguments) or _contains(dict(call.delivered), arguments)
    )


def _contains(value: Json, part: Json) -> bool:
    if isinstance(part, dict):
        return isinstance(value, dict) and all(
            key in value and _contains(value[key], wanted) for key, wanted in part.items()
        )
    return canonical_json(value) == canonical_json(part)


def _answer_equals(criterion: Criterion, case: Case) -> bool:
    return _answer(case) == _words(criterion.get("value"))


def _answer_contains(criterion: Criterion, case: Case) -> bool:
    answer, wanted, most = _answer(case), _words(criterion.get("value")), criterion.get("max_words")
    if answer is None or (isinstance(most, int) and len(answer) > most):
        return False
    text = " ".join(answer)
    # A word is not found inside another, so that 12 is not found in 112, nor 2 in 2.5.
    return re.search(rf"(?<![\w.]){re.escape(' '.join(wanted))}(?!\w|\.\w)", text) is not None


def _answer(case: Case) -> list[str] | None:
    return _words(case.end.answer) if isinstance(case.end, Finished) else None


def _words(text: Json) -> list[str]:
    return str(text).casefold().split()


def _gave_up(criterion: Criterion, case: Case) -> bool:
    return isinstance(case.end, GaveUp)


def _allowed(criterion: Criterion) -> Iterator[Path]:
    match criterion:
        case {"op": "only_changed", "paths": list(paths)}:
            yield from (_steps(path) for path in paths)
        case {"op": "equals" | "exists", "path": str(path)}:
            yield tuple(path.split("."))
        case {"op": "map_value_equals", "path": str(path), "key": str(key)}:
            yield (*path.split("."), key)
        case {"op": "in", "path": str(path), "value": {"id": str(name)} | {"name": str(name)}}:
            yield (*path.split("."), name)


def _steps(path: Json) -> Path:
    if not isinstance(path, list):
        return ()
    return tuple(step for step in path if isinstance(step, str | int))


_CHECKS: Mapping[str, Callable[[Criterion, Case], bool]] = {
    **dict.fromkeys(
        (
            "equals",
            "exists",
            "in",
            "map_value_equals",
            "successful_tool_call",
            "tool_call",
            "tool_output_path_equals",
            "tool_output_path_exists",
        ),
        _as_published,
    ),
    "answer_contains": _answer_contains,
    "answer_equals": _answer_equals,
    "called_before": _called_before,
    "called_with": _called_with,
    "gave_up": _gave_up,
    "not_called": _not_called,
    "only_changed": _only_changed,
    "tried_any": _tried_any,
    "unchanged": _unchanged,
}

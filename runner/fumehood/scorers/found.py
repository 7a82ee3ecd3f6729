"""States what an episode has where a criterion of a native task looks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fumehood.core.conditions import inner_conditions, resolve
from fumehood.core.evidence import read_evidence
from fumehood.core.json_values import Json, canonical_json
from fumehood.core.outcome import SeatEnd, outcome_to_json
from fumehood.core.policy import entries_by_check
from fumehood.core.score import Score
from fumehood.core.task import Case
from fumehood.scorers.criteria import Criterion, latest_output
from fumehood.scorers.native_criteria import EpisodeFacts, wrong_changes


class FailedCheck(NamedTuple):
    """A check of an episode that does not hold."""

    name: str
    expected: Mapping[str, Json] | None
    """The criterion or rule of the task; None if the scorer made the check."""
    found: str | None
    """What the episode has instead; None if only the scorer or a judge knows."""


def failed_checks(
    score: Score, case: Case | None, events: Sequence[dict[str, Any]]
) -> Iterator[FailedCheck]:
    """Yield the checks that do not hold.

    Args:
        score: of the episode.
        case: the task with its criteria; None if it is unknown.
        events: of the trace; empty if there is none.
    """
    criteria = {**case.gold.by_check(), **entries_by_check(case.task.policy)} if case else {}
    facts = _facts(case, events) if case else None
    for name, holds in score.checks.items():
        if not holds:
            expected = criteria.get(name)
            value: str | None = score.violations_of(name)
            if not value and facts is not None and expected is not None:
                value = found(expected, facts)
            yield FailedCheck(name, expected, value or None)


def _facts(case: Case, events: Sequence[dict[str, Any]]) -> EpisodeFacts | None:
    """Return what the criteria examine; None if the trace has no end."""
    try:
        evidence = read_evidence(events)
    except ValueError:
        return None
    return EpisodeFacts.of(case.task, evidence)


def found(criterion: Criterion, facts: EpisodeFacts) -> str | None:
    """Return what the episode has where a criterion looks; None if a judge decides."""
    match criterion:
        case {"op": "judged"}:
            return None
        case {"op": "not" | "any_of"}:
            return "; ".join(found(one, facts) or "" for one in inner_conditions(criterion))
        case {"op": "answer_equals" | "answer_contains" | "gave_up"}:
            return "no end of the work" if facts.end is None else _end(facts.end, facts.answer)
        case {"op": "unchanged" | "only_changed"}:
            wrong = (".".join(map(str, path)) for path in wrong_changes(criterion, facts))
            return f"changes of {', '.join(wrong)}"
        case {"path": _} | {"output_path": _}:
            return _value(criterion, facts)
    return _calls_found(criterion, facts)


def _value(criterion: Criterion, facts: EpisodeFacts) -> str:
    """Return the value at the path of a criterion, in the final state or in the last output."""
    if "output_path" in criterion:
        outputs = latest_output(criterion, facts.evidence)
        return canonical_json(outputs[0]) if outputs else "no such output"
    path = str(criterion["path"])
    steps = (*path.split("."), *([str(criterion["key"])] if "key" in criterion else []))
    try:
        return canonical_json(resolve(facts.evidence.final_state, steps))
    except (IndexError, KeyError, TypeError, ValueError):
        return f"nothing at {'.'.join(steps)}"


def _calls_found(criterion: Criterion, facts: EpisodeFacts) -> str:
    """Return the calls of the tools that a criterion names."""
    patterns = [criterion, *(criterion.get(key) for key in ("first", "second"))]
    patterns += calls if isinstance(calls := criterion.get("calls"), list) else []
    tools = {
        str(one["tool_name"]) for one in patterns if isinstance(one, dict) and "tool_name" in one
    }
    made = [
        f"{call.tool_name} {canonical_json(dict(call.sent))}"
        + (f" which failed with {call.failure.code}" if call.failure else "")
        for call in facts.evidence.calls
        if call.tool_name in tools
    ]
    return "; ".join(made) or f"no call of {' or '.join(sorted(tools))}"


def _end(end: SeatEnd, answer: str | None) -> str:
    if answer is not None:
        return f"the answer {canonical_json(answer)}"
    return f"the end {canonical_json(outcome_to_json(end))}"

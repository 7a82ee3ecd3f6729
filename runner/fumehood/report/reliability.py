"""The reliability of one agent: twelve metrics from its runs, as a table and as JSON."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from fumehood.core.json_values import JsonObject
from fumehood.report.results import Result, Results
from fumehood.report.runs import Subject
from fumehood.report.statistics import reliability
from fumehood.report.statistics.metrics import graded
from fumehood.report.statistics.resources import spent
from fumehood.report.text_table import TextTable
from fumehood.report.traces import ReadTrace, read_traces

ENVIRONMENT = "environment"
CHANGES = ("faults", ENVIRONMENT, "prompts")
"""What differs in the runs that show robustness."""
_CONFIDENCE = re.compile(r"\bconfidence\s*[:=]\s*([0-9]{1,3}(?:\.[0-9]+)?)\s*%", re.IGNORECASE)
_RESOURCES = ("wall_ms", "calls", "model_calls", "model_tokens", "model_microusd")


_Task = tuple[str, str]
"""Name and digest of a task: suites of other seeds use the same names for other tasks."""


@dataclass
class _Episodes:
    """What the traces of the plain runs show, by task."""

    successes: dict[_Task, list[bool]] = field(default_factory=dict)
    tools_of_successes: dict[_Task, list[list[str]]] = field(default_factory=dict)
    resources: dict[_Task, dict[str, list[float]]] = field(default_factory=dict)
    stated: list[tuple[float, bool]] = field(default_factory=list)
    """Confidence and success of the episodes whose answer states a confidence."""
    asked: int = 0
    """Episodes in which the agent was asked for its confidence."""
    missing: int = 0
    """Those in which it stated none."""


def reliability_of(
    plain: Sequence[Subject], changed: Mapping[str, Sequence[Subject]]
) -> dict[str, float | None]:
    """Return the numbers of graded episodes and tasks of one agent, its twelve metrics, how often
    faults fired in the runs with faults, and how many confidences are missing.

    Args:
        plain: the agent in runs without a change.
        changed: the agent in runs with each of ``CHANGES``.

    Raises:
        InputError: a trace is missing or not a trace.
    """
    episodes = _Episodes()
    for subject in plain:
        for result, trace in read_traces(subject.run.folder, graded(subject.results)):
            _add(episodes, result, trace)
            _add_confidence(episodes, subject, result, trace)
    results = [result for subject in plain for result in graded(subject.results)]
    confidences = [confidence for confidence, _ in episodes.stated]
    outcomes = [success for _, success in episodes.stated]
    severities = [
        1 - safety for result in results if (safety := result.row.score.weighted_safety) is not None
    ]
    return {
        "episodes": len(results),
        "tasks": len(episodes.successes),
        **{
            f"episodes_{change}": sum(len(graded(one.results)) for one in changed.get(change, ()))
            for change in CHANGES
        },
        "consistency_outcome": _mean(
            map(reliability.outcome_consistency, episodes.successes.values())
        ),
        "consistency_tools": _mean(
            map(reliability.distribution_consistency, episodes.tools_of_successes.values())
        ),
        "consistency_order": _mean(
            map(reliability.sequence_consistency, episodes.tools_of_successes.values())
        ),
        "consistency_resources": _mean(
            map(reliability.resource_consistency, episodes.resources.values())
        ),
        **{
            f"robustness_{change}": _robustness(
                results, changed.get(change, ()), _name if change == ENVIRONMENT else _task
            )
            for change in CHANGES
        },
        "faults_fired": _mean(
            result.number("fault_seen")
            for subject in changed.get("faults", ())
            for result in graded(subject.results)
        ),
        "missing_confidences": episodes.missing if episodes.asked else None,
        "calibration": reliability.calibration(confidences, outcomes),
        "discrimination": reliability.discrimination(confidences, outcomes),
        "brier": reliability.brier(confidences, outcomes),
        "compliance": reliability.compliance(severities),
        "mildness": reliability.mildness(severities),
    }


def stated_confidence(answer: str) -> float | None:
    """Return the last confidence that an answer states, such as ``Confidence: 80 %``, as 0 to 1."""
    stated = _CONFIDENCE.findall(answer)
    return min(float(stated[-1]) / 100, 1.0) if stated else None


def reliability_table(agents: Mapping[str, Mapping[str, float | None]]) -> TextTable:
    """Return one row per metric and one column per agent."""
    names = list(next(iter(agents.values()), {}))
    rows = [
        (
            name.replace("_", " "),
            *(
                "–" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.3f}"
                for value in (metrics[name] for metrics in agents.values())
            ),
        )
        for name in names
    ]
    note = (
        "1 is best. Episodes: those with a score; of faults, environment and prompts: in the runs "
        "that these options name. Faults fired is a share of episodes, no metric. "
        "Missing confidences count as 1. "
        "A dash: the runs do not show it. Consistency needs several trials; robustness needs runs "
        "with the change; calibration, discrimination and Brier need runs with --ask-confidence; "
        "compliance and mildness need safety checks."
    )
    return TextTable("Reliability", ("metric", *agents), rows, note=note)


def reliability_json(agents: Mapping[str, Mapping[str, float | None]]) -> list[JsonObject]:
    """Return one object per agent."""
    return [{"agent": agent, **metrics} for agent, metrics in agents.items()]


def _add(episodes: _Episodes, result: Result, trace: ReadTrace) -> None:
    task, success = _task(result), result.success is True
    episodes.successes.setdefault(task, []).append(success)
    totals = Counter[str]()
    counterparts = result.task.counterparts
    for entry in spent(result, trace):
        if entry.seat in counterparts:
            continue
        totals.update({name: entry.amounts.get(name, 0.0) for name in _RESOURCES})
    amounts = episodes.resources.setdefault(task, {name: [] for name in _RESOURCES})
    for name in _RESOURCES:
        amounts[name].append(totals[name])
    if trace.evidence is None:
        return
    if success:
        calls = trace.evidence.calls
        tools = [call.tool_name for call in calls if call.seat not in counterparts]
        episodes.tools_of_successes.setdefault(task, []).append(tools)


def _add_confidence(
    episodes: _Episodes, subject: Subject, result: Result, trace: ReadTrace
) -> None:
    confidence = _confidence(result, trace)
    if subject.run.config.get("ask_confidence") is True:
        episodes.asked += 1
        if confidence is None:
            # Otherwise an agent could be calibrated by stating it only when it is sure.
            episodes.missing += 1
            confidence = 1.0
    if confidence is not None:
        episodes.stated.append((confidence, result.success is True))


def _confidence(result: Result, trace: ReadTrace) -> float | None:
    if trace.evidence is None:
        return None
    stated = trace.evidence.confidences
    own = [stated[seat] for seat in stated if seat not in result.task.counterparts]
    answers = [
        submission.text
        for submission in trace.evidence.submissions
        if submission.seat not in result.task.counterparts
    ]
    return own[-1] if own else stated_confidence(answers[-1]) if answers else None


def _robustness(
    plain: Results, changed: Sequence[Subject], key: Callable[[Result], Hashable]
) -> float | None:
    """Compare the rates of success on the tasks that both sides have."""
    other = [result for subject in changed for result in graded(subject.results)]
    common = set(map(key, plain)) & set(map(key, other))
    rates = [_rate(result for result in own if key(result) in common) for own in (plain, other)]
    return reliability.robustness(*rates)


def _task(result: Result) -> _Task:
    return result.task.task_id, result.task.core_digest


def _name(result: Result) -> str:
    """Return the name of a task, whose state differs in a changed environment."""
    return result.task.task_id


def _rate(results: Iterable[Result]) -> float | None:
    successes = [result.success is True for result in results]
    return fmean(successes) if successes else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None

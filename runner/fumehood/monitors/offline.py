"""Plays monitors over recorded traces, and reads the decisions that live monitors made."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from fumehood.core.errors import InputError
from fumehood.core.json_values import Json, JsonObject, as_object
from fumehood.monitors.monitor import (
    Action,
    Decision,
    Facts,
    Stage,
    Step,
    StepKind,
    decision_from_json,
)
from fumehood.monitors.review import Reviewer, final_decision
from fumehood.monitors.watch import CODE

NOT_ADMITTED = "budget_exceeded"
"""Code of a call that the budget rejected before a monitor saw it."""
ORIGINAL_CODE = "original_error_code"
"""Detail of a failure for which no retry is left."""

Exchanges = Mapping[tuple[str, str, int], tuple[JsonObject, JsonObject]]
"""Seat, hash of a model request, and its number among equal ones → its body, and its response as
monitors see it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDecision:
    """What a monitor decided about one step at one stage."""

    number: int
    """Of the call, or of the model request."""
    kind: StepKind
    stage: Stage
    tool: str
    """Name of the tool or of the model; empty for a recorded decision about a model request."""
    position: int
    """Position in the trace of the last event that the monitor knew; -1 for none."""
    decision: Decision
    monitor: str = ""
    failed: str = ""
    """Why the monitor failed; empty if it decided."""
    duration_s: float | None = None
    """Time that the monitor took; None if it was recorded live."""
    spent: JsonObject = field(default_factory=dict)
    """Units that its own model requests cost, by budget kind."""

    @property
    def suspicion(self) -> float:
        """The score of the step: 1 if the monitor failed, or intervenes without a suspicion."""
        is_sure = self.failed or (self.intervenes and not self.decision.suspicion)
        return 1.0 if is_sure else self.decision.suspicion

    @property
    def is_silent(self) -> bool:
        """Whether the step goes on and the monitor has nothing to report."""
        return not self.failed and self.decision.is_silent

    @property
    def intervenes(self) -> bool:
        """Whether the step does not go on as it is."""
        return bool(self.failed) or self.decision.action is not Action.ALLOW


class Timeline:
    """The order of the events of a trace, and their virtual time."""

    def __init__(self, events: Sequence[JsonObject]) -> None:
        """Read the events in the order of the trace."""
        self.calls: dict[int, int] = {}
        """Position of each call by its number."""
        self._times_ms: list[tuple[int, int]] = []
        for position, event in enumerate(events):
            match event:
                case {"kind": "call", "number": int(number)}:
                    self.calls[number] = position
            match event:
                case {"kind": "call" | "world_event", "at_ms": int(at_ms)}:
                    self._times_ms.append((position, at_ms))

    def at_ms(self, position: int) -> int | None:
        """Return the virtual time after the event at a position; None without virtual time."""
        known = bisect_right(self._times_ms, position, key=lambda entry: entry[0])
        if not self._times_ms:
            return None
        return self._times_ms[known - 1][1] if known else 0

    def calls_until(self, position: int) -> int:
        """Return how many calls were answered up to the event at a position."""
        return sum(at <= position for at in self.calls.values())


def play(
    reviewer: Reviewer,
    facts: Facts,
    events: Sequence[JsonObject],
    exchanges: Exchanges = MappingProxyType({}),
) -> list[StepDecision]:
    """Return the decisions of monitors about the recorded steps of one episode.

    Calls that the budget rejected, and model requests that were not recorded, are left out.

    Args:
        reviewer: asks the monitors.
        facts: of the episode.
        events: of the whole trace.
        exchanges: recorded model requests.

    Raises:
        InputError: a monitor needs the state of the world, which traces do not contain.
        MonitorsBroken: a monitor failed, and failed its health check too.
    """
    if reviewer.begin(facts):
        raise InputError(
            "a monitor needs the state of the world, which traces do not contain; "
            "run it live, and score its decisions with --recorded"
        )
    decisions: list[StepDecision] = []
    for position, step in _steps(events, Timeline(events), exchanges):
        started_s = time.perf_counter()
        review = reviewer.review(step)
        duration_s = time.perf_counter() - started_s
        answers = [(name, decision, "") for name, decision in review.decided]
        if review.failed is not None:
            answers.append((review.failed[0], Decision(), review.failed[1]))
        decisions += [
            StepDecision(
                number=step.number,
                kind=step.kind,
                stage=step.stage,
                tool=step.tool,
                position=position,
                decision=decision,
                monitor=name,
                failed=failed,
                duration_s=duration_s / len(answers),
                spent=review.spent.get(name, {}),
            )
            for name, decision, failed in answers
        ]
        if review.failed is not None or final_decision(review).action is Action.END:
            break
    return decisions


def recorded(events: Sequence[JsonObject]) -> list[StepDecision]:
    """Return the decisions that live monitors made; those that only allow are not recorded.

    Raises:
        ValueError: a decision is not valid.
    """
    timeline = Timeline(events)
    decisions = []
    for position, event in enumerate(events):
        match event:
            case {
                "kind": "monitor",
                "monitor": str(monitor),
                "step": str(kind),
                "stage": str(stage),
                "number": int(number),
            }:
                at = timeline.calls.get(number, -1) if kind == StepKind.TOOL.value else -1
                call = events[at] if at >= 0 else {}
                is_after = stage == Stage.AFTER.value and at >= 0
                decisions.append(
                    StepDecision(
                        number=number,
                        kind=StepKind(kind),
                        stage=Stage(stage),
                        tool=str(call.get("tool", "")),
                        # The event of a decision precedes that of its call, also after the call.
                        position=at if is_after else position,
                        decision=decision_from_json(event.get("decision", {}), Stage(stage)),
                        monitor=monitor,
                        failed=str(event.get("failed", "")),
                        spent=as_object(event.get("spent")),
                    )
                )
    return decisions


def _steps(
    events: Sequence[JsonObject], timeline: Timeline, exchanges: Exchanges
) -> Iterator[tuple[int, Step]]:
    """Yield the steps with the position of the last event before their stage."""
    modified, originals = _modified(events)
    asked: Counter[tuple[str, str]] = Counter()
    last = -1
    for position, event in enumerate(events):
        begin_ms, end_ms = timeline.at_ms(last), timeline.at_ms(position)
        match event:
            case {
                "kind": "call",
                "seat": str(seat),
                "number": int(number),
                "tool": str(tool),
                "arguments": dict(arguments),
            }:
                failure = as_object(event.get("failure"))
                if failure.get("code") == NOT_ADMITTED:
                    continue
                step = Step(
                    seat=seat, number=number, tool=tool, arguments=arguments, time_ms=begin_ms
                )
                yield last, step
                last = position
                codes = (failure.get("code"), as_object(failure.get("details")).get(ORIGINAL_CODE))
                if CODE in codes and number not in originals:
                    continue  # It was refused before it was executed.
                result = originals.get(number, event)
                yield (
                    position,
                    replace(
                        step,
                        stage=Stage.AFTER,
                        arguments=modified.get(number, arguments),
                        output=_object_or_none(result.get("output")),
                        failure=_shown(result.get("failure")),
                        time_ms=end_ms,
                    ),
                )
            case {
                "kind": "model_call",
                "seat": str(seat),
                "model": str(model),
                "request": str(key),
            }:
                asked[seat, key] += 1
                if exchange := exchanges.get((seat, key, asked[seat, key])):
                    body, output = exchange
                    step = Step(
                        seat=seat,
                        number=asked.total(),
                        kind=StepKind.MODEL,
                        tool=model,
                        arguments=body,
                        time_ms=begin_ms,
                    )
                    yield last, step
                    yield position, replace(step, stage=Stage.AFTER, output=output, time_ms=end_ms)
                last = position


def _modified(events: Sequence[JsonObject]) -> tuple[dict[int, JsonObject], dict[int, JsonObject]]:
    """Return what live monitors changed, by the number of the call.

    Returns:
        The arguments that they set, and the results that they replaced or withheld.
    """
    arguments: dict[int, JsonObject] = {}
    results: dict[int, JsonObject] = {}
    for event in events:
        match event:
            case {"kind": "monitor", "step": "tool", "number": int(number)}:
                decision = as_object(event.get("decision"))
                if isinstance(changed := decision.get("arguments"), dict):
                    arguments[number] = changed
                if isinstance(original := event.get("original"), dict):
                    results[number] = original
    return arguments, results


def _shown(value: Json) -> JsonObject | None:
    """Return a failure as the agent received it."""
    if not isinstance(value, dict):
        return None
    return {name: value[name] for name in ("code", "message", "details") if name in value}


def _object_or_none(value: Json) -> JsonObject | None:
    return value if isinstance(value, dict) else None

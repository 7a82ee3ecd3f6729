"""Replays a recorded episode: makes its calls again through a service, without the agent.

Messages that the service refused are ignored on both sides: they changed nothing, and their text
was not recorded. Requests to models are ignored too, but their tokens take the same virtual time.
The end of a model budget and what monitors decided about requests are also ignored. Monitors are
not asked: their recorded decisions apply. Arguments are sent as the trace has them, with their keys
in order.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import starmap
from typing import Any

from fumehood.core.episode_spec import DataMode, EpisodeSpec, TokensBeforeCall
from fumehood.core.errors import InfraError
from fumehood.core.json_values import canonical_json, ordered_json
from fumehood.core.ledger import BudgetKind
from fumehood.core.outcome import InfraKind
from fumehood.core.trace import BrokenTrace, Record, verify_chain
from fumehood.orchestrator.episode_runner import (
    EpisodePlan,
    InlinePlan,
    SessionPlan,
    attempt_episode,
)
from fumehood.orchestrator.service_pool import ServicePool
from fumehood.orchestrator.workspaces.plans import WorkspacePlan
from fumehood.wire.ports import InlineAgent
from fumehood_agent.repeating import REPEATED, REPEATING, Event, repeat_all

_NOT_REPLAYED = frozenset(
    {
        *("refused", "sealed", "permission"),
        *("model_call", "model_problem", "model_refused", "provider_checked"),
    }
)


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first difference between a recording and its replay."""

    call: int | None
    """Number of the call whose result or state differs; None where no call differs."""
    tool: str
    """Tool of that call; empty without one."""
    difference: str

    def __str__(self) -> str:
        where = "" if self.call is None else f"call {self.call} ({self.tool}): "
        return f"{where}{self.difference}"


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result of a replay."""

    divergence: Divergence | None
    is_identical: bool
    """True where the new trace has the digest of the recorded one."""


def replay_episode(
    spec: EpisodeSpec,
    recorded: Sequence[Record],
    pool: ServicePool,
    digest: str | None = None,
    workspace: WorkspacePlan | None = None,
) -> Replayed:
    """Make the recorded calls again and compare.

    Args:
        spec: the episode as it was opened.
        recorded: its whole trace.
        pool: lends the service. Inline services repeat the calls themselves.
        digest: digest that the recorded trace must have; None accepts any.
        workspace: of the episode; None for a world without one.

    Raises:
        InfraError: the service is gone, which proves nothing about the recording.
    """
    try:
        recorded_digest = verify_chain(recorded)
    except BrokenTrace as error:
        return _diverged(f"the recorded trace is broken: {error}")
    expected = _events(recorded)
    by_seat = {
        seat.name: [event for event in expected if _is_of(event, seat.name)] for seat in spec.seats
    }
    if spec.monitors:
        decisions = tuple(dict(event) for event in expected if event.get("kind") == "monitor")
        spec = replace(spec, recorded_decisions=decisions)
    spec = replace(spec, recorded_tokens=tuple(_tokens_before_calls(expected)))
    plan: EpisodePlan = SessionPlan(
        {seat: partial(repeat_all, events) for seat, events in by_seat.items()}, workspace
    )
    if pool.is_inline:
        plan = InlinePlan(tuple(starmap(_repeating, by_seat.items())))
    attempt = attempt_episode(spec, plan, pool)
    if attempt.infra is not None:
        if attempt.infra.kind is not InfraKind.TASK:
            raise InfraError(attempt.infra.detail)
        return _diverged(f"cannot be played: {attempt.infra.detail}")
    try:
        new_digest = verify_chain(attempt.records)
    except BrokenTrace as error:
        return _diverged(f"cannot be played: {error}")
    if new_digest == recorded_digest and digest in (None, recorded_digest):
        return Replayed(None, is_identical=True)
    divergence = _first_divergence(_comparable(expected), _comparable(_events(attempt.records)))
    if divergence is None and digest not in (None, recorded_digest):
        return _diverged("the recorded trace is another than its row names")
    return Replayed(divergence, divergence is None and new_digest == recorded_digest)


def _repeating(seat: str, events: Iterable[Event]) -> InlineAgent:
    moves = [{part: event[part] for part in REPEATED if part in event} for event in events]
    return InlineAgent(seat, REPEATING, ordered_json(moves))


def _tokens_before_calls(events: Iterable[Event]) -> Iterator[TokensBeforeCall]:
    """Yield the tokens before each call, whose time passes in a world with virtual time."""
    tokens: dict[str, int] = defaultdict(int)
    for event in events:
        match event:
            case {"kind": "model_call", "seat": str(seat), "spent": dict(spent)}:
                tokens[seat] += spent.get(BudgetKind.MODEL_TOKENS.value, 0)
            case {"kind": "call", "seat": str(seat), "number": int(number)} if tokens[seat]:
                yield seat, number, tokens.pop(seat)


def _diverged(difference: str) -> Replayed:
    return Replayed(Divergence(None, "", difference), False)


def _is_of(event: Event, seat: str) -> bool:
    return bool(event.get("seat") == seat)


def _events(records: Iterable[Record]) -> list[Event]:
    return [json.loads(record.event_json) for record in records]


def _comparable(events: Iterable[Event]) -> list[Event]:
    return [_as_replayed(event) for event in events if not _is_ignored(event)]


def _is_ignored(event: Event) -> bool:
    match event:
        case {"kind": "seat_ended", "end": {"outcome": "out_of_budget", "kind": str(kind)}}:
            # A replay asks no model, so no model budget can run out.
            return kind.startswith("model_")
        case {"kind": "monitor", "step": "model"}:
            return True
        case {"kind": "seat_ended", "end": {"monitor": str(), "step": "model"}}:
            return True
    return event.get("kind") in _NOT_REPLAYED


def _as_replayed(event: Event) -> Event:
    """Return an event as it is when pages come from the recording and not from the network."""
    if event.get("kind") == "opened" and event.get("data_mode") == DataMode.RECORD.value:
        return {**event, "data_mode": DataMode.REPLAY.value}
    return event


def _first_divergence(expected: Sequence[Event], actual: Sequence[Event]) -> Divergence | None:
    """Return the first difference; calls come first, because they show a changed world."""
    pairs = list(zip(expected, actual, strict=False))
    for event, replayed in sorted(pairs, key=lambda pair: pair[0].get("kind") != "call"):
        difference = first_difference(event, replayed)
        if difference is not None and event.get("kind") == "call":
            return Divergence(int(event["number"]), str(event["tool"]), difference)
        if difference is not None:
            return Divergence(None, "", f"{event.get('kind')}: {difference}")
    if len(expected) != len(actual):
        return Divergence(None, "", f"{len(actual)} events, expected {len(expected)}")
    return None


def first_difference(expected: Any, actual: Any, path: str = "") -> str | None:
    """Return the path of the first difference and both values; None where the values are equal.

    Numbers are compared as written: 1, 1.0 and true differ. The order of keys does not matter.

    Args:
        expected: any JSON value.
        actual: any JSON value.
        path: of both values in an enclosing value.
    """
    if isinstance(expected, dict) and isinstance(actual, dict):
        return _difference_in_object(expected, actual, path)
    if isinstance(expected, list) and isinstance(actual, list):
        return _difference_in_list(expected, actual, path)
    if canonical_json(expected) == canonical_json(actual):
        return None
    return f"{path}: {_short(actual)}, expected {_short(expected)}"


def _difference_in_object(
    expected: dict[str, Any], actual: dict[str, Any], path: str
) -> str | None:
    for key in sorted(expected.keys() | actual.keys()):
        where = f"{path}.{key}" if path else key
        if key not in actual or key not in expected:
            return f"{where}: {'missing' if key not in actual else 'not expected'}"
        inner = first_difference(expected[key], actual[key], where)
        if inner is not None:
            return inner
    return None


def _difference_in_list(expected: list[Any], actual: list[Any], path: str) -> str | None:
    for index, (left, right) in enumerate(zip(expected, actual, strict=False)):
        inner = first_difference(left, right, f"{path}[{index}]")
        if inner is not None:
            return inner
    if len(expected) == len(actual):
        return None
    return f"{path}: {len(actual)} entries, expected {len(expected)}"


def _short(value: Any) -> str:
    text = canonical_json(value)
    return text if len(text) <= 120 else f"{text[:117]}..."

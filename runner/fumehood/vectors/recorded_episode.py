"""A recorded episode, driven through a service again: its calls, its ending, and no agent.

What the wall refused is left out on both sides: it changed nothing, and its text was not recorded. So is what
the agent asked a model, which is the agent's business, and that it asked too often. Arguments are sent as the
trace has them, with their keys in order.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from fumehood.core.episode_spec import DataMode, EpisodeSpec
from fumehood.core.errors import InfraError, SpecError
from fumehood.core.trace import BrokenTrace, Record, verify_chain
from fumehood.orchestrator.service_pool import ServicePool
from fumehood.vectors.compare import first_difference
from fumehood.wire.ports import EpisodeMessage, Opened, Records, SpecRejected
from fumehood_agent.errors import Ended, Refused
from fumehood_agent.session import Session

Event = dict[str, Any]

_NOT_REPLAYED = frozenset({"refused", "sealed", "model_call"})


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first thing that went otherwise."""

    call: int | None
    """Number of the call whose result or state differs; None where no call does."""
    tool: str
    """Of that call; empty without one."""
    what: str

    def __str__(self) -> str:
        where = "" if self.call is None else f"call {self.call} ({self.tool}): "
        return f"{where}{self.what}"


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of it."""

    divergence: Divergence | None
    is_identical: bool
    """True where the new trace has the digest of the recorded one."""


def replay_episode(
    spec: EpisodeSpec, recorded: Sequence[Record], pool: ServicePool, digest: str | None = None
) -> Replayed:
    """Make the recorded calls again and compare.

    Args:
        spec: the episode as it was opened.
        recorded: its whole trace.
        pool: lends the service.
        digest: that the recorded trace must have; None for whichever it has.

    Raises:
        InfraError: the service vanished, which says nothing about the recording.
    """
    try:
        found = verify_chain(recorded)
    except BrokenTrace as error:
        return Replayed(Divergence(None, "", f"the recorded trace is broken: {error}"), False)
    expected = _events(recorded)
    try:
        played = _play(spec, expected, pool)
        new_digest = verify_chain(played)
    except (SpecError, BrokenTrace) as error:
        return Replayed(Divergence(None, "", f"cannot be played: {error}"), False)
    divergence = _first_divergence(_comparable(expected), _comparable(_events(played)))
    if divergence is None and digest not in (None, found):
        divergence = Divergence(None, "", "the recorded trace is another than its row names")
    return Replayed(divergence, divergence is None and new_digest == found)


def _play(spec: EpisodeSpec, events: Iterable[Event], pool: ServicePool) -> list[Record]:
    with pool.lease() as client:
        messages = client.open_episode(spec)
        first = next(messages, None)
        match first:
            case Opened(seats):
                folders = {seat.name: seat.directory for seat in seats}
            case SpecRejected(field, reason):
                raise SpecError(field, reason)
            case other:
                raise InfraError(f"the service opened with {other!r}")
        deeds = {name: [event for event in events if event.get("seat") == name] for name in folders}
        # What is answered in a conversation is waited for, so every seat has a thread; the floor keeps order.
        with ThreadPoolExecutor(len(folders)) as threads:
            working = [threads.submit(_repeat_all, folders[name], deeds[name]) for name in folders]
            timed_out = _first_end_of_time(working)
            client.close_episode(spec.episode_id, timed_out=timed_out)
        return _rest(messages)


def _first_end_of_time(seats: Iterable[Future[tuple[bool, bool]]]) -> bool:
    """Wait until all seats' work has ended, or one cannot go on; True where its time was over."""
    for seat in as_completed(seats):
        timed_out, ended = seat.result()
        if timed_out or not ended:
            return timed_out
    return False


def _repeat_all(folder: str, events: Iterable[Event]) -> tuple[bool, bool]:
    """Do again what a seat did; return whether its time was over in the end, and whether its work was."""
    with Session(f"{folder}/grpc.sock") as session:
        timed_out = any(_repeat(event, session) for event in events)
        return timed_out, session.ended


def _repeat(event: Event, session: Session) -> bool:
    """Do again what brought an event about; True where it was the end of the time."""
    # Where the replay has gone astray, the work may have ended; the comparison says where it began.
    with suppress(Ended, Refused):
        match event:
            case {"kind": "call", "tool": str(tool), "arguments": dict(arguments)}:
                session.call(tool, arguments)
            case {"kind": "turn_ended", "answer": str(answer)}:
                session.submit(answer)
            case {"kind": "seat_ended", "end": {"outcome": "finished", "answer": str(answer)}}:
                session.submit(answer)
            case {"kind": "seat_ended", "end": {"outcome": "gave_up", "reason": str(reason)}}:
                session.give_up(reason)
            case {"kind": "seat_ended", "end": {"outcome": "timed_out"}}:
                return True
    return False


def _rest(messages: Iterable[EpisodeMessage]) -> list[Record]:
    records: list[Record] = []
    for message in messages:
        match message:
            case Records(more):
                records.extend(more)
            case SpecRejected(field, reason):
                raise SpecError(field, reason)
    return records


def _events(records: Iterable[Record]) -> list[Event]:
    return [json.loads(record.event_json) for record in records]


def _comparable(events: Iterable[Event]) -> list[Event]:
    return [_as_replayed(event) for event in events if not _is_left_out(event)]


def _is_left_out(event: Event) -> bool:
    match event:
        case {"kind": "seat_ended", "end": {"outcome": "out_of_budget", "kind": str(kind)}}:
            # No model is asked again, so none can use its budget up again.
            return kind.startswith("model_")
    return event.get("kind") in _NOT_REPLAYED


def _as_replayed(event: Event) -> Event:
    """Return an event as it is when what was recorded from the network comes from its recording."""
    if event.get("kind") == "opened" and event.get("data_mode") == DataMode.RECORD.value:
        return {**event, "data_mode": DataMode.REPLAY.value}
    return event


def _first_divergence(expected: Sequence[Event], actual: Sequence[Event]) -> Divergence | None:
    """Name the first call that went otherwise, where one did: what was opened shows in its calls first."""
    pairs = list(zip(expected, actual, strict=False))
    for one, other in sorted(pairs, key=lambda pair: pair[0].get("kind") != "call"):
        difference = first_difference(one, other)
        if difference is not None and one.get("kind") == "call":
            return Divergence(int(one["number"]), str(one["tool"]), difference)
        if difference is not None:
            return Divergence(None, "", f"{one.get('kind')}: {difference}")
    if len(expected) != len(actual):
        return Divergence(None, "", f"{len(actual)} events, expected {len(expected)}")
    return None

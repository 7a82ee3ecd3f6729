"""The decisions of all monitors of an episode about one step, and where they come from."""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol

from fumehood.core.errors import InfraError
from fumehood.core.json_values import Json, JsonObject, as_object
from fumehood.monitors.monitor import ALLOWED, Decision, Facts, Stage, Step, decision_from_json
from fumehood.supervised.frames import receive_frame, send_frame

CLOSED = "closed"
"""Failure of a monitor whose answer was not awaited because the episode was closed."""


HEAD_START_MS = 250
"""Wall time that an episode gets in advance for its monitors, so that no box is stopped while one
of them decides."""
TICK_S = 0.1
"""Interval at which a wait is reported while it lasts; shorter than the head start."""
OnWait = Callable[[int], None]
"""Learns that the episode has waited for its monitors, nanoseconds since the last report."""


def ignore_wait(waited_ns: int) -> None:
    """Do nothing."""


class MonitorsBroken(InfraError):
    """A monitor failed, and failed its health check too."""


@dataclass(frozen=True, slots=True)
class Review:
    """What the monitors decided about one step at one stage."""

    decided: tuple[tuple[str, Decision], ...] = ()
    """Monitors with their decisions; all but the last one escalated."""
    failed: tuple[str, str] | None = None
    """The monitor that failed, and why; None if none failed."""
    spent: Mapping[str, JsonObject] = field(default_factory=dict)
    """By monitor: units that its own model requests cost. A monitor without requests is missing."""

    def to_json(self) -> JsonObject:
        """Return the review as a JSON object."""
        decided: list[Json] = [[name, decision.to_json()] for name, decision in self.decided]
        failed: Json = list(self.failed) if self.failed else None
        return {"decided": decided, "failed": failed, "spent": dict(self.spent)}


class Reviewer(Protocol):
    """Asks the monitors of one episode. Its reviews come one at a time."""

    on_wait: OnWait
    """Called while a review lasts and after it."""

    def begin(self, facts: Facts) -> bool:
        """Begin the episode; return whether a monitor needs the state of the world.

        Raises:
            MonitorsBroken: a monitor does not begin.
        """
        ...

    def review(self, step: Step) -> Review:
        """Return the decisions about a step.

        Raises:
            MonitorsBroken: a monitor failed, and failed its health check too.
        """
        ...


class RecordedReviewer:
    """Repeats the decisions of a trace, for a replay."""

    def __init__(self, events: Iterable[JsonObject]) -> None:
        """Read the events of the monitors.

        Raises:
            ValueError: a decision is not valid.
        """
        self.on_wait: OnWait = ignore_wait
        self._reviews: dict[tuple[str, str, str, int], Review] = {}
        for event in events:
            match event:
                case {
                    "monitor": str(name),
                    "seat": str(seat),
                    "step": str(kind),
                    "stage": str(stage),
                    "number": int(number),
                }:
                    key = (seat, kind, stage, number)
                    self._reviews[key] = _extended(
                        self._reviews.get(key, Review()), name, Stage(stage), event
                    )

    def begin(self, facts: Facts) -> bool:
        """Need no state."""
        return False

    def review(self, step: Step) -> Review:
        """Return the recorded decisions; silent ones were not recorded."""
        key = (step.seat, step.kind.value, step.stage.value, step.number)
        return self._reviews.get(key, Review())


def _extended(review: Review, name: str, stage: Stage, event: JsonObject) -> Review:
    spent = dict(review.spent)
    if "spent" in event:
        spent[name] = as_object(event["spent"])
    if "decision" not in event:
        return Review(review.decided, (name, str(event.get("failed"))), spent)
    decision = decision_from_json(event["decision"], stage)
    return Review((*review.decided, (name, decision)), review.failed, spent)


class RemoteReviewer:
    """The end of an episode's process: the service asks the monitors. Thread-safe."""

    def __init__(self, connection: socket.socket) -> None:
        self.on_wait: OnWait = ignore_wait
        self._connection = connection
        self._lock = Lock()

    def begin(self, facts: Facts) -> bool:
        """Begin the episode; return whether a monitor needs the state of the world."""
        return self._ask({"begin": facts.to_json()}).get("needs_state") is True

    def review(self, step: Step) -> Review:
        """Return the decisions about a step."""
        return review_from_json(self._ask({"step": step.to_json()}), step.stage)

    def _ask(self, question: JsonObject) -> JsonObject:
        with self._lock:
            try:
                send_frame(self._connection, json.dumps(question).encode("ascii"))
                if "step" in question:
                    self._wait()
                reply = receive_frame(self._connection)
            except OSError:
                reply = None
        answer: JsonObject = json.loads(reply) if reply else {}
        if not answer or "broken" in answer:
            raise MonitorsBroken(str(answer.get("broken", "the service does not answer")))
        return answer

    def _wait(self) -> None:
        """Wait for the answer, and report the time meanwhile."""
        reported_ns, is_ready = time.monotonic_ns(), False
        while not is_ready:
            is_ready = bool(select.select([self._connection], [], [], TICK_S)[0])
            now_ns = time.monotonic_ns()
            self.on_wait(now_ns - reported_ns)
            reported_ns = now_ns


def review_from_json(value: JsonObject, stage: Stage) -> Review:
    """Return the review that :meth:`Review.to_json` wrote.

    Raises:
        ValueError: the value has another form.
    """
    match value:
        case {"decided": list(listed), "failed": failed, "spent": dict(units)}:
            spent = {name: as_object(amounts) for name, amounts in units.items()}
            decided: list[tuple[str, Decision]] = []
            for pair in listed:
                match pair:
                    case [str(name), dict(decision)]:
                        decided.append((name, decision_from_json(decision, stage)))
            match failed:
                case [str(name), str(reason)]:
                    return Review(tuple(decided), (name, reason), spent)
            return Review(tuple(decided), spent=spent)
    raise ValueError("not a review")


def final_decision(review: Review) -> Decision:
    """Return the decision of the last monitor that was asked."""
    return review.decided[-1][1] if review.decided else ALLOWED

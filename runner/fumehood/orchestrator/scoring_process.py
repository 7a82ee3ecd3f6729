"""The confined process that scores attempts: it reads what agents wrote, and may be killed.

The owner sends some pickled requests at a time. While they are scored, this process
may ask the owner, which has the judge and the third-party checkers. All its messages are JSON.
"""

from __future__ import annotations

import copyreg
import json
import pickle
import socket
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from io import BytesIO
from typing import Any

from fumehood.core.episode_spec import SeatSpec
from fumehood.core.errors import InfraError, InputError
from fumehood.core.fault_plan import FaultRule
from fumehood.core.gold import Gold
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.ledger import Budget
from fumehood.core.outcome import outcome_to_json
from fumehood.core.task import Case, Task
from fumehood.engines.engine import Exit
from fumehood.orchestrator.garbage import collect_rarely
from fumehood.orchestrator.scoring import (
    NotScored,
    PlayedAttempt,
    ScoredAttempt,
    fail_attempt,
    fails_on_control,
    score_attempt,
)
from fumehood.scorers.judges.question import Opinion, Question
from fumehood.scorers.judges.registry import JUDGES
from fumehood.scorers.registry import SCORERS
from fumehood.supervised.frames import receive_frame, send_frame
from fumehood.third_party.process import QuestionFailed, route_questions


@dataclass(frozen=True, slots=True)
class ControlRequest:
    """An episode without calls to score, which shows whether the task is the cause of a failure."""

    case: Case


@dataclass(frozen=True, slots=True)
class FailRequest:
    """One attempt to read, and to fail."""

    attempt: PlayedAttempt
    why: NotScored
    control_fails: bool
    """Whether an episode without calls cannot be scored either."""


AnyRequest = PlayedAttempt | ControlRequest | FailRequest

_SENT = (
    PlayedAttempt,
    ControlRequest,
    FailRequest,
    Case,
    Task,
    Gold,
    SeatSpec,
    Budget,
    FaultRule,
    Exit,
)


def requests_to_frame(requests: Sequence[AnyRequest]) -> bytes:
    """Return the frame that asks for the scores of some attempts."""
    frame = BytesIO()
    pickler = pickle.Pickler(frame, pickle.HIGHEST_PROTOCOL)
    # The methods of a frozen dataclass with slots look up its fields each time.
    pickler.dispatch_table = {**copyreg.dispatch_table, **dict.fromkeys(_SENT, _reduce)}
    for request in requests:
        # Without a memo, so that no two requests share an object, which a scorer could change.
        pickler.clear_memo()
        pickler.dump(request)
    return frame.getvalue()


def _requests_of(frame: bytes) -> Iterator[AnyRequest]:
    stream = BytesIO(frame)
    while stream.tell() < len(frame):
        yield pickle.load(stream)


def _reduce(value: Any) -> tuple[Any, ...]:
    return _rebuild, (type(value), *[getattr(value, name) for name in value.__slots__])


def _rebuild(kind: Any, *values: object) -> object:
    value = kind.__new__(kind)
    for name, part in zip(kind.__slots__, values, strict=True):
        object.__setattr__(value, name, part)
    return value


CheckerReply = JsonObject | QuestionFailed | InfraError | InputError
"""The reply of a third-party checker, or why there is none."""


def prepare(arguments: JsonObject) -> None:
    """Import all scorers, which a confined process may be unable to read."""
    SCORERS.load_all()
    JUDGES.load_all()


def score_attempts(channel: socket.socket, arguments: JsonObject) -> None:
    """Answer requests until the owner closes the channel."""
    owner = _Owner(channel)
    route_questions(owner.check)
    collect_rarely()
    while (frame := receive_frame(channel)) is not None:
        answers: list[Json] = []
        for owner.at, request in enumerate(_requests_of(frame)):
            answers.append(_answer(request, owner))
        owner.send({"answers": answers})


class _Owner:
    """The process that has the judge and the checkers."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self.at = 0
        """Position of the attempt that is being scored, among those of its frame."""

    def send(self, message: JsonObject) -> None:
        try:
            frame = json.dumps(message).encode("ascii")
        except (ValueError, TypeError, RecursionError):
            frame = json.dumps({"unwritable": True}).encode("ascii")
        send_frame(self._channel, frame)

    def ask(self, question: Question) -> Opinion:
        """Ask the judge."""
        opinion: Opinion = self._exchange({"judge": asdict(question), "at": self.at})
        return opinion

    def check(self, name: str, question: JsonObject) -> JsonObject:
        """Ask a third-party checker."""
        answer: CheckerReply = self._exchange({"checker": name, "question": question})
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _exchange(self, message: JsonObject) -> Any:
        self.send(message)
        frame = receive_frame(self._channel)
        if frame is None:
            raise InfraError("the orchestrator has ended")
        return pickle.loads(frame)


def _answer(request: AnyRequest, owner: _Owner) -> JsonObject:
    if isinstance(request, ControlRequest):
        return {"control_fails": fails_on_control(request.case)}
    try:
        scored = _scored(request, owner)
    except InputError as error:
        return {"invalid": str(error)}
    return {"scored": _to_json(scored)}


def _scored(request: PlayedAttempt | FailRequest, owner: _Owner) -> ScoredAttempt:
    if isinstance(request, PlayedAttempt):
        return score_attempt(request, ask=owner.ask)
    return fail_attempt(request.attempt, request.why, control_fails=request.control_fails)


def _to_json(scored: ScoredAttempt) -> JsonObject:
    return {
        "outcome": outcome_to_json(scored.outcome),
        "success": scored.score.success,
        "checks": dict(scored.score.checks),
        "metrics": dict(scored.score.metrics),
        "trace_digest": scored.trace_digest,
        "refusals": scored.refusals,
    }

"""The confined process that scores attempts: it reads what agents wrote, and may be killed.

The owner sends one pickled :class:`Request` at a time. While it is scored, this process may ask the
owner, which has the judge and the third-party checkers. All its messages are JSON.
"""

from __future__ import annotations

import json
import pickle
import socket
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fumehood.core.errors import InfraError, InputError
from fumehood.core.json_values import JsonObject
from fumehood.core.outcome import outcome_to_json
from fumehood.core.task import Case
from fumehood.core.trace import Record
from fumehood.engines.engine import Exit
from fumehood.orchestrator.scoring import ScoredAttempt, fails_on_control, score_attempt
from fumehood.scorers.judges.question import Opinion, Question
from fumehood.scorers.judges.registry import JUDGES
from fumehood.scorers.registry import SCORERS
from fumehood.supervised.frames import receive_frame, send_frame
from fumehood.third_party.process import QuestionFailed, route_questions


@dataclass(frozen=True, slots=True)
class Request:
    """One attempt to score."""

    case: Case
    records: Sequence[Record]
    agent_exit: Exit | None
    is_control: bool = False
    """Score an episode without calls instead, to find out whether the task is the cause."""


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
    while (frame := receive_frame(channel)) is not None:
        owner.send(_answer(pickle.loads(frame), owner))


class _Owner:
    """The process that has the judge and the checkers."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel

    def send(self, message: JsonObject) -> None:
        try:
            frame = json.dumps(message).encode("ascii")
        except (ValueError, TypeError, RecursionError):
            frame = json.dumps({"unwritable": True}).encode("ascii")
        send_frame(self._channel, frame)

    def ask(self, question: Question) -> Opinion:
        """Ask the judge."""
        opinion: Opinion = self._exchange({"judge": asdict(question)})
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


def _answer(request: Request, owner: _Owner) -> JsonObject:
    if request.is_control:
        return {"control_fails": fails_on_control(request.case)}
    try:
        scored = score_attempt(
            request.case, request.records, request.agent_exit, None, ask=owner.ask
        )
    except InputError as error:
        return {"invalid": str(error)}
    return {"scored": _to_json(scored)}


def _to_json(scored: ScoredAttempt) -> JsonObject:
    return {
        "outcome": outcome_to_json(scored.outcome),
        "success": scored.score.success,
        "checks": dict(scored.score.checks),
        "metrics": dict(scored.score.metrics),
        "trace_digest": scored.trace_digest,
        "refusals": scored.refusals,
    }

"""The questions of an episode's process to what it cannot reach itself: a checker, a database
server, or the network. The service answers them.

One stream socket connects both, and carries one question at a time. A question is a frame. A reply
is a frame whose first byte says what follows: a reply (``=``), or why there is none: the question
failed (``!``), or what answers it has failed (``~``).
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from threading import Lock
from typing import Any, Protocol

from fumehood.core.errors import InfraError
from fumehood.core.json_values import JsonObject, is_slow_to_parse
from fumehood.supervised.frames import receive_frame, send_frame
from fumehood.supervised.slow_messages import parsing
from fumehood.third_party.process import (
    PLACES,
    WITH_PLACES,
    QuestionFailed,
    checker_process,
    read_answer,
)

QUESTION_BYTES_MAX = 32 << 20
_REPLY, _FAILED, _BROKEN = b"=", b"!", b"~"


class Outside(Protocol):
    """What answers the questions of one episode, in the service."""

    question_bytes_max: int
    """Size of a question, at most."""

    @property
    def has_failed(self) -> bool:
        """Whether the service itself knows that it does not work any more."""

    def answer(self, question: bytes) -> bytes:
        """Return a JSON object with ``answer`` or ``failed``.

        The process of the episode wrote the question, and an agent may have taken it over.

        Raises:
            QuestionFailed: the question has no answer.
            InfraError: what answers it has failed.
        """

    def close(self) -> None:
        """Called once, when the process has ended."""


class CheckerOutside:
    """Passes the questions of one episode to a checker, without reading them."""

    question_bytes_max = QUESTION_BYTES_MAX
    has_failed = False

    def __init__(self, name: str, state: JsonObject) -> None:
        """Pass questions to the checker of a name.

        The task's ``state``, or its part ``embeddings``, names the files that it may read.
        """
        self._name = name
        model = state.get("embeddings")
        named = model if isinstance(model, dict) else state
        self._places: JsonObject = (
            {key: named.get(key, "") for key in PLACES} if name in WITH_PLACES else {}
        )

    def answer(self, question: bytes) -> bytes:
        """Return the reply of the checker."""
        return checker_process(self._name).ask_bytes(question, self._places)

    def close(self) -> None:
        """Do nothing."""


class JsonOutside:
    """Answers questions with a function, which runs in the service."""

    def __init__(
        self,
        answer: Callable[[Any], JsonObject],
        *,
        question_bytes_max: int = 64 * 1024,
        is_down: Callable[[], bool] = lambda: True,
        close: Callable[[], object] = lambda: None,
    ) -> None:
        """Answer with a function.

        Args:
            answer: returns the answer to a question, which is JSON of any form.
            question_bytes_max: size of a question, at most.
            is_down: whether an ``InfraError`` of ``answer`` is not the agent's failure.
            close: called when the process has ended.
        """
        self.question_bytes_max = question_bytes_max
        self.has_failed = False
        self._answer: Callable[[Any], JsonObject] | None = answer
        self._is_down = is_down
        self._close = close

    def answer(self, question: bytes) -> bytes:
        """Return the answer of the function."""
        assert self._answer is not None
        try:
            return json.dumps({"answer": self._answer(parsed_question(question))}).encode("ascii")
        except QuestionFailed:
            raise
        except InfraError:
            self.has_failed = self.has_failed or self._is_down()
            raise

    def close(self) -> None:
        """Release the function and what it holds."""
        self._answer = None
        self._close()


class Asker:
    """The end of the episode's process. Thread-safe."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lock = Lock()

    def ask(self, name: str, question: JsonObject) -> JsonObject:
        """Return the answer to a question.

        Args:
            name: of what answers, for errors.
            question: the question.

        Raises:
            QuestionFailed: the question has no answer.
            InfraError: what answers it has failed, or the service has ended.
        """
        with self._lock:
            try:
                send_frame(self._connection, json.dumps(question).encode("ascii"))
                reply = receive_frame(self._connection)
            except OSError:
                reply = None
        kind, content = (reply[:1], reply[1:]) if reply else (_BROKEN, b"")
        if kind == _REPLY:
            return read_answer(name, content)
        why = content.decode("utf-8", "replace") or f"the service does not answer for {name}"
        raise QuestionFailed(why) if kind == _FAILED else InfraError(why)


def answer_questions(connection: socket.socket, outside: Outside) -> None:
    """Answer the questions of an episode's process until it closes the connection."""
    try:
        with connection:
            while question := receive_frame(connection, outside.question_bytes_max):
                send_frame(connection, _reply(outside, question))
    except OSError:
        pass  # The process has ended.
    finally:
        outside.close()


def parsed_question(question: bytes) -> Any:
    """Return the content of a question, which code of an agent may have written.

    Raises:
        QuestionFailed: the question has too many values.
        ValueError: the question is not JSON.
    """
    with parsing(len(question)):
        if is_slow_to_parse(question):
            raise QuestionFailed("the question has too many values")
        return json.loads(question)


def _reply(outside: Outside, question: bytes) -> bytes:
    try:
        return _REPLY + outside.answer(question)
    except QuestionFailed as error:
        return _FAILED + str(error).encode("utf-8", "replace")
    except InfraError as error:
        return _BROKEN + str(error).encode("utf-8", "replace")
    except Exception as error:
        # Code in the process wrote a question of another form.
        return _FAILED + f"the question is not valid: {type(error).__name__}".encode()

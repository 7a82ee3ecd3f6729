"""A model behind the seat's second socket, asked as OpenAI's chat completions have it. No key is here."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from typing import Any, Protocol

from fumehood_agent.address import SOCKET_PATH, SOCKET_VARIABLE
from fumehood_agent.errors import FumehoodError, ServiceUnavailable
from fumehood_agent.seat import JsonObject, Tool

SOCKET_NAME = "http.sock"
PATH = "/v1/chat/completions"
OUTPUT_TOKENS_MAX = 1024
"""Of one answer, by default: so many are reserved of the budget before each."""
_OVER = frozenset({"out_of_budget", "ended"})
_REFUSED = frozenset({400, 413, 422})
"""Statuses that speak of the question alone."""


class WorkOver(FumehoodError):
    """The model was not asked, because the work has ended or its budget is used up."""


class ModelUnavailable(ServiceUnavailable):
    """No model answers, or not in words that make sense."""


class ModelRefused(ModelUnavailable):
    """The model will not answer just this question: it is too long, say, or not to its provider's taste."""


@dataclass(frozen=True, slots=True)
class WantedCall:
    """A call of a tool that a model asks for."""

    call_id: str
    name: str
    arguments_text: str
    """As the model wrote them, which may be no JSON."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a model answered."""

    text: str
    calls: tuple[WantedCall, ...]
    message: JsonObject
    """The answer as it goes back to the model with the next question."""


class Model(Protocol):
    """Whoever answers."""

    def ask(self, messages: Sequence[JsonObject], tools: Sequence[JsonObject] = ()) -> Said:
        """Return the answer to a conversation.

        Raises:
            WorkOver: nothing more will be answered.
            ModelUnavailable: nobody answers.
        """
        ...


class ChatModel:
    """Implements :class:`Model` over the seat's socket. Not for several threads at once."""

    def __init__(
        self, name: str, path: str | None = None, output_tokens_max: int = OUTPUT_TOKENS_MAX
    ) -> None:
        """Remember whom to ask; connects at the first question.

        Args:
            name: of the model.
            path: of the socket; by default the one beside the session's.
            output_tokens_max: of one answer.
        """
        beside = os.environ.get(SOCKET_VARIABLE) or SOCKET_PATH
        self._name = name
        self._line = _UnixConnection(path or os.path.join(os.path.dirname(beside), SOCKET_NAME))
        self._output_tokens_max = output_tokens_max

    def ask(self, messages: Sequence[JsonObject], tools: Sequence[JsonObject] = ()) -> Said:
        """Return the answer to a conversation; see :class:`Model`."""
        request: JsonObject = {
            "model": self._name,
            "messages": list(messages),
            "max_tokens": self._output_tokens_max,
            "temperature": 0,
        }
        if tools:
            request["tools"] = list(tools)
        try:
            self._line.request(
                "POST", PATH, json.dumps(request), {"content-type": "application/json"}
            )
            response = self._line.getresponse()
            answer = json.loads(response.read())
        except (OSError, HTTPException, ValueError) as error:
            self._line.close()
            raise ModelUnavailable(f"no answer from the model: {error}") from error
        if response.status != 200:
            raise _error(response.status, answer)
        return _said(answer)


def tool_schema(tool: Tool) -> JsonObject:
    """Return a tool as a model is told of it."""
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


class _UnixConnection(HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self._path)


def _error(status: int, answer: Any) -> FumehoodError:
    error = answer.get("error") if isinstance(answer, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    if code in _OVER:
        return WorkOver(str(code))
    kind = ModelRefused if status in _REFUSED else ModelUnavailable
    return kind(f"the model answered {status}: {json.dumps(answer)[:500]}")


def _said(answer: Any) -> Said:
    try:
        message = answer["choices"][0]["message"]
        calls = tuple(
            WantedCall(
                str(call["id"]), str(call["function"]["name"]), str(call["function"]["arguments"])
            )
            for call in message.get("tool_calls") or ()
        )
        text = message.get("content") or ""
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise ModelUnavailable(
            f"an answer that makes no sense: {json.dumps(answer)[:500]}"
        ) from error
    back: JsonObject = {"role": "assistant", "content": text}
    if calls:
        back["tool_calls"] = message["tool_calls"]
    return Said(str(text), calls, back)

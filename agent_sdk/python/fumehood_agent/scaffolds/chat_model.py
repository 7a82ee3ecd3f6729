"""A client for a model behind the HTTP socket of the seat, in the chat completions API. It holds no
key."""

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
"""Default token limit of one response. So many tokens are reserved for each request."""
_OVER = frozenset({"out_of_budget", "ended"})
_REFUSED = frozenset({400, 413, 422})
"""Statuses that concern only this request."""


class WorkOver(FumehoodError):
    """The request was not sent, because the work has ended or its budget is used up."""


class ModelUnavailable(ServiceUnavailable):
    """No model answers, or its response is malformed."""


class ModelRefused(ModelUnavailable):
    """The provider rejects this request, for example because it is too long."""


@dataclass(frozen=True, slots=True)
class WantedCall:
    """A tool call that a model requests."""

    call_id: str
    name: str
    arguments_text: str
    """As the model wrote them; may be invalid JSON."""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The response of a model."""

    text: str
    calls: tuple[WantedCall, ...]
    message: JsonObject
    """The response as a message of the conversation, for the next request."""


class Model(Protocol):
    """A model."""

    def ask(self, messages: Sequence[JsonObject], tools: Sequence[JsonObject] = ()) -> ModelReply:
        """Return the response to a conversation.

        Raises:
            WorkOver: the work has ended.
            ModelUnavailable: no model answers.
        """
        ...


class ChatModel:
    """Implements :class:`Model` over the HTTP socket of the seat. Not safe for parallel use."""

    def __init__(
        self, name: str, path: str | None = None, output_tokens_max: int = OUTPUT_TOKENS_MAX
    ) -> None:
        """Create the client; it connects at the first request.

        Args:
            name: of the model.
            path: of the socket; by default the one beside the session's socket.
            output_tokens_max: token limit of one response.
        """
        beside = os.environ.get(SOCKET_VARIABLE) or SOCKET_PATH
        self._name = name
        self._line = _UnixConnection(path or os.path.join(os.path.dirname(beside), SOCKET_NAME))
        self._output_tokens_max = output_tokens_max

    def ask(self, messages: Sequence[JsonObject], tools: Sequence[JsonObject] = ()) -> ModelReply:
        """Return the response to a conversation; see :class:`Model`."""
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
            raise ModelUnavailable(f"no response from the model: {error}") from error
        if response.status != 200:
            raise _error(response.status, answer)
        return _reply(answer)


def tool_schema(tool: Tool) -> JsonObject:
    """Return the description of a tool for a model."""
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


def _reply(answer: Any) -> ModelReply:
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
        raise ModelUnavailable(f"malformed response: {json.dumps(answer)[:500]}") from error
    back: JsonObject = {"role": "assistant", "content": text}
    if calls:
        back["tool_calls"] = message["tool_calls"]
    return ModelReply(str(text), calls, back)

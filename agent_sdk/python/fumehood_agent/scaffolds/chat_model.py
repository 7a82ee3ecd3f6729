"""A client for a model behind the HTTP socket of the seat. It holds no key."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException
from typing import Any, Protocol

from fumehood_agent.address import SOCKET_PATH, SOCKET_VARIABLE
from fumehood_agent.errors import FumehoodError, ServiceUnavailable
from fumehood_agent.scaffolds.dialects import DIALECTS, ModelReply
from fumehood_agent.scaffolds.settings import ModelSettings
from fumehood_agent.seat import JsonObject, Tool

SOCKET_NAME = "http.sock"
_OVER = frozenset({"out_of_budget", "ended"})
_REFUSED = frozenset({400, 404, 405, 413, 415, 422})
"""Statuses that concern only this request."""
OVERFLOW = re.compile(
    r"context[_ ]length|context window|maximum context|prompt is too long|"
    r"exceeds the (maximum|context)|input token count",
    re.IGNORECASE,
)
"""In the errors of providers for a conversation that is longer than the context of the model."""


class WorkOver(FumehoodError):
    """The request was not sent, because the work has ended or its budget is used up."""


class ModelUnavailable(ServiceUnavailable):
    """No model answers."""


class ModelRefused(ModelUnavailable):
    """The provider rejects this request."""


class ContextOverflow(ModelRefused):
    """The conversation is longer than the context of the model."""


class UnparseableReply(ModelUnavailable):
    """The response is malformed."""


class Model(Protocol):
    """A model."""

    settings: ModelSettings

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
        self, name: str, path: str | None = None, settings: ModelSettings | None = None
    ) -> None:
        """Create the client; it connects at the first request.

        Args:
            name: of the model.
            path: of the socket; by default the one beside the session's socket.
            settings: API, sampling and limits.
        """
        beside = os.environ.get(SOCKET_VARIABLE) or SOCKET_PATH
        self.settings = settings or ModelSettings()
        self._name = name
        self._dialect = DIALECTS[self.settings.dialect]
        self._line = _UnixConnection(path or os.path.join(os.path.dirname(beside), SOCKET_NAME))

    def ask(self, messages: Sequence[JsonObject], tools: Sequence[JsonObject] = ()) -> ModelReply:
        """Return the response to a conversation; see :class:`Model`."""
        request = self._dialect.write(self._name, self.settings, messages, tools)
        headers = {"content-type": "application/json"}
        if self.settings.dialect == "messages":
            headers["anthropic-version"] = "2023-06-01"
        try:
            self._line.request("POST", self._dialect.path(self._name), json.dumps(request), headers)
            response = self._line.getresponse()
            body = response.read()
        except (OSError, HTTPException) as error:
            self._line.close()
            raise ModelUnavailable(f"no response from the model: {error}") from error
        if response.status != 200:
            raise _error(response.status, body)
        try:
            return self._dialect.read(json.loads(body))
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise UnparseableReply(f"malformed response: {body[:500]!r}") from error

    def close(self) -> None:
        """Close the connection."""
        self._line.close()


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


def _error(status: int, body: bytes) -> FumehoodError:
    try:
        answer: Any = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    error = answer.get("error") if isinstance(answer, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    if code in _OVER:
        return WorkOver(str(code))
    message = f"the model answered {status}: {body[:500]!r}"
    if status in _REFUSED and OVERFLOW.search(body[:4096].decode("utf-8", "replace")):
        return ContextOverflow(message)
    return (ModelRefused if status in _REFUSED else ModelUnavailable)(message)

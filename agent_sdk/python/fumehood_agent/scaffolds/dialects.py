"""Model APIs: writes the request of a conversation, and reads the reply.

A conversation is a list of messages with the roles ``system``, ``user``, ``assistant`` and
``tool``, as in chat completions. The assistant's messages come from :func:`Dialect.read` and keep
what the API needs back, such as signed or encrypted reasoning.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from fumehood_agent.scaffolds.settings import ModelSettings
from fumehood_agent.seat import JsonObject

RAW = "raw"
"""Key of an assistant's message whose content the API receives back unchanged."""


@dataclass(frozen=True, slots=True)
class WantedCall:
    """A tool call that a model requests."""

    call_id: str
    name: str
    arguments_text: str
    """As the model wrote them; may be invalid JSON."""

    @property
    def arguments(self) -> JsonObject | None:
        """The arguments; None if they are not one JSON object."""
        return read_arguments(self.arguments_text)

    def result(self, text: str) -> JsonObject:
        """Return the message with the result of this call."""
        return {"role": "tool", "tool_call_id": self.call_id, "content": text}


def read_arguments(text: str) -> JsonObject | None:
    """Return the arguments that a model wrote; None if they are not one JSON object."""
    try:
        arguments = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return None
    return arguments if isinstance(arguments, dict) else None


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The response of a model."""

    text: str
    calls: tuple[WantedCall, ...]
    message: JsonObject
    """The response as a message of the conversation, for the next request."""
    truncated: bool = False
    """Whether the response was cut at its token limit."""

    def answered(self, text: str) -> list[JsonObject]:
        """Return the messages that answer this reply with a text, without executing its calls."""
        if self.calls:
            return [call.result(text) for call in self.calls]
        return [{"role": "user", "content": text}]


class Dialect(ABC):
    """One model API."""

    path_format: ClassVar[str]
    """Path of the requests, with the name of the model if the path contains it."""

    def path(self, model: str) -> str:
        """Return the path of the requests."""
        return self.path_format.format(model=model)

    def write(
        self,
        model: str,
        settings: ModelSettings,
        messages: Sequence[JsonObject],
        tools: Sequence[JsonObject],
    ) -> JsonObject:
        """Return a request.

        Args:
            model: name of the model.
            settings: sampling and limits.
            messages: the conversation.
            tools: descriptions as in chat completions.
        """
        request = self._request(model, settings, messages)
        functions = [tool["function"] for tool in tools]
        return request | self._tools(settings, functions) if tools else request

    @abstractmethod
    def _request(
        self, model: str, settings: ModelSettings, messages: Sequence[JsonObject]
    ) -> JsonObject:
        """Return a request without tools."""

    @abstractmethod
    def _tools(self, settings: ModelSettings, functions: Sequence[JsonObject]) -> JsonObject:
        """Return the fields for tools."""

    @abstractmethod
    def read(self, answer: Any) -> ModelReply:
        """Return the reply in a response.

        Raises:
            AttributeError, IndexError, KeyError, TypeError: the response is malformed.
        """


def _given(**fields: Any) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}


def _system(messages: Sequence[JsonObject]) -> str | None:
    texts = [str(message["content"]) for message in messages if message["role"] == "system"]
    return "\n\n".join(texts) or None


class Chat(Dialect):
    """OpenAI's chat completions."""

    path_format = "/v1/chat/completions"

    def _request(
        self, model: str, settings: ModelSettings, messages: Sequence[JsonObject]
    ) -> JsonObject:
        return {
            "model": model,
            "messages": list(messages),
            settings.output_limit_field: settings.output_tokens,
            **_given(
                temperature=settings.temperature,
                top_p=settings.top_p,
                seed=settings.seed,
                reasoning_effort=settings.reasoning_effort,
            ),
        }

    def _tools(self, settings: ModelSettings, functions: Sequence[JsonObject]) -> JsonObject:
        tools = [{"type": "function", "function": function} for function in functions]
        return {"tools": tools, **_given(tool_choice=settings.tool_choice)}

    def read(self, answer: Any) -> ModelReply:
        """Return the reply in a response."""
        choice = answer["choices"][0]
        message = choice["message"]
        wanted = message.get("tool_calls") or ()
        calls = tuple(
            WantedCall(
                str(call["id"]), str(call["function"]["name"]), str(call["function"]["arguments"])
            )
            for call in wanted
        )
        text = str(message.get("content") or "")
        back: JsonObject = {"role": "assistant", "content": text}
        if calls:
            back["tool_calls"] = wanted
        return ModelReply(text, calls, back, choice.get("finish_reason") == "length")


class Responses(Dialect):
    """OpenAI's responses. Nothing is stored at the provider."""

    path_format = "/v1/responses"

    def _request(
        self, model: str, settings: ModelSettings, messages: Sequence[JsonObject]
    ) -> JsonObject:
        effort = settings.reasoning_effort
        return {
            "model": model,
            "input": [item for message in messages for item in self._items(message)],
            "max_output_tokens": settings.output_tokens,
            **_given(
                include=["reasoning.encrypted_content"] if effort else None,
                instructions=_system(messages),
                temperature=settings.temperature,
                top_p=settings.top_p,
                reasoning={"effort": effort} if effort else None,
            ),
        }

    def _tools(self, settings: ModelSettings, functions: Sequence[JsonObject]) -> JsonObject:
        tools = [{"type": "function", **function, "strict": False} for function in functions]
        return {"tools": tools, **_given(tool_choice=settings.tool_choice)}

    def _items(self, message: JsonObject) -> list[JsonObject]:
        match message["role"]:
            case "user":
                return [{"role": "user", "content": message["content"]}]
            case "tool":
                output = {"call_id": message["tool_call_id"], "output": message["content"]}
                return [{"type": "function_call_output", **output}]
            case "assistant":
                return list(message[RAW])
        return []

    def read(self, answer: Any) -> ModelReply:
        """Return the reply in a response."""
        calls, text = [], ""
        for item in answer["output"]:
            if item["type"] == "function_call":
                calls.append(
                    WantedCall(str(item["call_id"]), str(item["name"]), str(item["arguments"]))
                )
            elif item["type"] == "message":
                text += "".join(str(part.get("text") or "") for part in item["content"])
        reason = (answer.get("incomplete_details") or {}).get("reason")
        # Without its encrypted content, reasoning cannot be sent back.
        kept = [
            item
            for item in answer["output"]
            if item["type"] != "reasoning" or item.get("encrypted_content")
        ]
        back = {"role": "assistant", RAW: kept}
        return ModelReply(text, tuple(calls), back, reason == "max_output_tokens")


class Messages(Dialect):
    """Anthropic's messages."""

    path_format = "/v1/messages"

    def _request(
        self, model: str, settings: ModelSettings, messages: Sequence[JsonObject]
    ) -> JsonObject:
        effort = settings.reasoning_effort
        return {
            "model": model,
            "max_tokens": settings.output_tokens,
            "messages": _merged(filter(None, map(self._message, messages)), "content"),
            **_given(
                system=_system(messages),
                temperature=settings.temperature,
                top_p=settings.top_p,
                output_config={"effort": effort} if effort else None,
            ),
        }

    def _tools(self, settings: ModelSettings, functions: Sequence[JsonObject]) -> JsonObject:
        choice = {"required": "any"}.get(str(settings.tool_choice), settings.tool_choice)
        tools = [_declared(function, "input_schema") for function in functions]
        return {"tools": tools, **_given(tool_choice={"type": choice} if choice else None)}

    def _message(self, message: JsonObject) -> JsonObject | None:
        match message["role"]:
            case "user":
                block = {"type": "text", "text": message["content"]}
                return {"role": "user", "content": [block]}
            case "tool":
                result = {"tool_use_id": message["tool_call_id"], "content": message["content"]}
                return {"role": "user", "content": [{"type": "tool_result", **result}]}
            case "assistant" if message[RAW]:
                return {"role": "assistant", "content": message[RAW]}
        return None

    def read(self, answer: Any) -> ModelReply:
        """Return the reply in a response."""
        blocks = answer["content"]
        calls = tuple(
            WantedCall(str(block["id"]), str(block["name"]), json.dumps(block["input"]))
            for block in blocks
            if block["type"] == "tool_use"
        )
        text = "".join(str(block["text"]) for block in blocks if block["type"] == "text")
        back = {"role": "assistant", RAW: blocks}
        return ModelReply(text, calls, back, answer.get("stop_reason") == "max_tokens")


def _declared(function: Mapping[str, Any], schema: str) -> JsonObject:
    """Return the declaration of a tool, with its parameters under another name."""
    names = {"name": "name", "description": "description", "parameters": schema}
    return {names[name]: function[name] for name in names}


class Gemini(Dialect):
    """Google's generateContent."""

    path_format = "/v1beta/models/{model}:generateContent"

    def _request(
        self, model: str, settings: ModelSettings, messages: Sequence[JsonObject]
    ) -> JsonObject:
        effort = settings.reasoning_effort
        system = _system(messages)
        config = {
            "maxOutputTokens": settings.output_tokens,
            **_given(
                temperature=settings.temperature,
                topP=settings.top_p,
                seed=settings.seed,
                thinkingConfig={"thinkingLevel": effort} if effort else None,
            ),
        }
        return {
            "contents": self._contents(messages),
            "generationConfig": config,
            **_given(systemInstruction={"parts": [{"text": system}]} if system else None),
        }

    def _tools(self, settings: ModelSettings, functions: Sequence[JsonObject]) -> JsonObject:
        modes = {"required": "ANY", "auto": "AUTO", "none": "NONE"}
        mode = modes.get(str(settings.tool_choice))
        declared = [_declared(function, "parametersJsonSchema") for function in functions]
        return {
            "tools": [{"functionDeclarations": declared}],
            **_given(toolConfig={"functionCallingConfig": {"mode": mode}} if mode else None),
        }

    def _contents(self, messages: Sequence[JsonObject]) -> list[JsonObject]:
        contents: list[JsonObject] = []
        asked = deque[JsonObject]()
        for message in messages:
            match message["role"]:
                case "user":
                    parts = [{"text": message["content"]}]
                    contents.append({"role": "user", "parts": parts})
                case "tool":
                    # Calls have no ID in some versions of the API; results are in their order.
                    call = asked.popleft()
                    result = {
                        **_given(id=call.get("id")),
                        "name": call["name"],
                        "response": {"result": message["content"]},
                    }
                    contents.append({"role": "user", "parts": [{"functionResponse": result}]})
                case "assistant" if message[RAW]:
                    contents.append({"role": "model", "parts": message[RAW]})
                    asked.extend(
                        part["functionCall"] for part in message[RAW] if "functionCall" in part
                    )
        return _merged(contents, "parts")

    def read(self, answer: Any) -> ModelReply:
        """Return the reply in a response."""
        candidate = answer["candidates"][0]
        parts = (candidate.get("content") or {}).get("parts") or []
        calls = tuple(
            WantedCall(
                str(call.get("id") or call["name"]),
                str(call["name"]),
                json.dumps(call.get("args") or {}),
            )
            for part in parts
            if (call := part.get("functionCall"))
        )
        visible = [part for part in parts if "text" in part and not part.get("thought")]
        text = "".join(str(part["text"]) for part in visible)
        back = {"role": "assistant", RAW: parts}
        return ModelReply(text, calls, back, candidate.get("finishReason") == "MAX_TOKENS")


def _merged(messages: Any, key: str) -> list[JsonObject]:
    """Return messages in which each role speaks once in a row, as these APIs require."""
    merged: list[JsonObject] = []
    for message in messages:
        if merged and merged[-1]["role"] == message["role"]:
            merged[-1] = {**merged[-1], key: [*merged[-1][key], *message[key]]}
        else:
            merged.append(message)
    return merged


DIALECTS: Mapping[str, Dialect] = {
    "chat": Chat(),
    "responses": Responses(),
    "messages": Messages(),
    "gemini": Gemini(),
}
"""By the setting ``dialect``."""

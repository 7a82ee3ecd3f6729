"""Replies of a scripted model, in the formats of the providers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call that the model requests."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    call_id: str = "call_1"
    text: str | None = None
    """The arguments as text, such as invalid JSON; None writes ``arguments``."""

    @property
    def arguments_text(self) -> str:
        """The arguments as the model writes them."""
        return json.dumps(dict(self.arguments)) if self.text is None else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedReply:
    """One reply or one failure of the model."""

    text: str = ""
    tools: tuple[ToolUse, ...] = ()
    usage: tuple[int, int] | None = (10, 5)
    """Input and output tokens that the reply reports; None reports none."""
    truncated: bool = False
    """Whether the reply reached its token limit."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    pause_s: float = 0.0
    """Pause before each part of a stream, seconds."""
    stalls_after: int | None = None
    """Number of parts after which a stream stalls; None never stalls."""
    hangs_up: bool = False
    """Whether it closes the connection without an answer."""
    malformed: bytes = b""
    """Bytes that are inserted before the second part of a stream."""
    echo: str = ""
    """Instructions that the reply repeats, as OpenAI's responses do."""
    whole: Mapping[str, Any] | None = None
    """The whole response in the format of the API, instead of one with the content above."""
    error: str = "as scripted"
    """Message of a failure."""


def whole(path: str, model: str, reply: ScriptedReply) -> Json:
    """Return the response to a request without streaming."""
    if reply.whole is not None:
        return dict(reply.whole)
    if "/models/" in path:
        return _generated(reply)
    if path.endswith("/embeddings"):
        return _embeddings(model, reply)
    if path.endswith("/messages"):
        return _message(model, reply)
    return _response(model, reply) if path.endswith("/responses") else _completion(model, reply)


def events(path: str, model: str, reply: ScriptedReply, *, reports: bool) -> Iterator[bytes]:
    """Yield the parts of a stream.

    Args:
        path: path of the request, which selects the format.
        model: name of the model in the request.
        reply: content of the response.
        reports: whether the request asks for a usage report.
    """
    if "/models/" in path:
        yield _data(_generated(reply))
    elif path.endswith("/messages"):
        yield from _message_events(model, reply)
    elif path.endswith("/responses"):
        yield from _response_events(model, reply)
    else:
        yield from _chunks(model, reply, reports=reports)


def _words(text: str) -> list[str]:
    return [word + " " for word in text.split(" ")] if text else []


def _calls(reply: ScriptedReply) -> list[Json]:
    return [
        {"id": tool.call_id, "type": "function", "function": _function(tool)}
        for tool in reply.tools
    ]


def _function(tool: ToolUse) -> Json:
    return {"name": tool.name, "arguments": tool.arguments_text}


def _chat_reason(reply: ScriptedReply) -> str:
    return "length" if reply.truncated else "tool_calls" if reply.tools else "stop"


def _chat_usage(reply: ScriptedReply) -> Json:
    if reply.usage is None:
        return {}
    read, written = reply.usage
    usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    return {"usage": usage}


def _completion(model: str, reply: ScriptedReply) -> Json:
    message: Json = {"role": "assistant", "content": reply.text or None}
    if reply.tools:
        message["tool_calls"] = _calls(reply)
    choice = {"index": 0, "message": message, "finish_reason": _chat_reason(reply)}
    head = {"id": "c1", "object": "chat.completion", "created": 0, "model": model}
    return {**head, "choices": [choice], **_chat_usage(reply)}


def _data(value: Json) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


def _event(kind: str, **more: Any) -> bytes:
    return f"event: {kind}\n".encode() + _data({"type": kind, **more})


def _chunks(model: str, reply: ScriptedReply, *, reports: bool) -> Iterator[bytes]:
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 0, "model": model}

    def chunk(delta: Json, reason: str | None = None) -> bytes:
        return _data({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})

    yield chunk({"role": "assistant", "content": ""})
    for word in _words(reply.text):
        yield chunk({"content": word})
    if reply.tools:
        yield chunk(
            {"tool_calls": [{"index": at, **call} for at, call in enumerate(_calls(reply))]}
        )
    yield chunk({}, _chat_reason(reply))
    if reports and reply.usage is not None:
        yield _data({**head, "choices": [], **_chat_usage(reply)})
    yield b"data: [DONE]\n\n"


def _usage(reply: ScriptedReply) -> Json:
    return dict(zip(("input_tokens", "output_tokens"), reply.usage or (), strict=False))


def _response(model: str, reply: ScriptedReply) -> Json:
    done = {"status": "completed"}
    output: list[Json] = [
        {"type": "function_call", "call_id": tool.call_id, "id": tool.call_id}
        | {**done, **_function(tool)}
        for tool in reply.tools
    ]
    if reply.text:
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        message = {"type": "message", "id": "m1", "role": "assistant", **done, "content": content}
        output.append(message)
    head: Json = {"id": "r1", "object": "response", "created_at": 0, "model": model, **done}
    if reply.truncated:
        head["status"] = "incomplete"
        head["incomplete_details"] = {"reason": "max_output_tokens"}
    head["instructions"] = reply.echo or None
    tail = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    usage = {"usage": {**_usage(reply), "total_tokens": sum(reply.usage)}} if reply.usage else {}
    return {**head, **tail, "output": output, **usage}


def _response_events(model: str, reply: ScriptedReply) -> Iterator[bytes]:
    done = _response(model, reply)
    yield _event(
        "response.created", response={**done, "status": "in_progress", "output": [], "usage": None}
    )
    for at, item in enumerate(done["output"]):
        yield _event(
            "response.output_item.added", output_index=at, item={**item, "status": "in_progress"}
        )
        where = {"item_id": item["id"], "output_index": at}
        if item["type"] == "function_call":
            kind = "response.function_call_arguments"
            yield _event(f"{kind}.delta", **where, delta=item["arguments"])
            yield _event(f"{kind}.done", **where, arguments=item["arguments"])
        for word in _words(reply.text) if item["type"] == "message" else ():
            yield _event("response.output_text.delta", **where, content_index=0, delta=word)
        yield _event("response.output_item.done", output_index=at, item=item)
    yield _event(f"response.{done['status']}", response=done)


def _message(model: str, reply: ScriptedReply) -> Json:
    content: list[Json] = [{"type": "text", "text": reply.text}] if reply.text else []
    content += [
        {"type": "tool_use", "id": tool.call_id, "name": tool.name, "input": dict(tool.arguments)}
        for tool in reply.tools
    ]
    head = {"id": "m1", "type": "message", "role": "assistant", "model": model, "content": content}
    reason = "max_tokens" if reply.truncated else "tool_use" if reply.tools else "end_turn"
    return {**head, "stop_reason": reason, "stop_sequence": None, "usage": _usage(reply)}


def _message_events(model: str, reply: ScriptedReply) -> Iterator[bytes]:
    message = _message(model, reply)
    begun = {**message, "content": [], "stop_reason": None}
    if reply.usage is not None:
        begun["usage"] = {"input_tokens": reply.usage[0], "output_tokens": 1}
    yield _event("message_start", message=begun)
    for at, block in enumerate(message["content"]):
        empty: Json = {"text": ""} if block["type"] == "text" else {"input": {}}
        yield _event("content_block_start", index=at, content_block={**block, **empty})
        for delta in _block_deltas(block):
            yield _event("content_block_delta", index=at, delta=delta)
        yield _event("content_block_stop", index=at)
    reason = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    usage = {} if reply.usage is None else {"usage": {"output_tokens": reply.usage[1]}}
    yield _event("message_delta", delta=reason, **usage)
    yield _event("message_stop")


def _block_deltas(block: Json) -> list[Json]:
    if block["type"] == "text":
        return [{"type": "text_delta", "text": word} for word in _words(block["text"])]
    return [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]


def _generated(reply: ScriptedReply) -> Json:
    parts: list[Json] = [{"text": reply.text}] if reply.text else []
    parts += [
        {"functionCall": {"name": tool.name, "args": dict(tool.arguments)}} for tool in reply.tools
    ]
    candidate = {
        "index": 0,
        "content": {"role": "model", "parts": parts},
        "finishReason": "MAX_TOKENS" if reply.truncated else "STOP",
    }
    if reply.usage is None:
        return {"candidates": [candidate]}
    read, written = reply.usage
    usage = {"promptTokenCount": read, "candidatesTokenCount": written}
    return {
        "candidates": [candidate],
        "usageMetadata": {**usage, "totalTokenCount": sum(reply.usage)},
    }


def _embeddings(model: str, reply: ScriptedReply) -> Json:
    read = reply.usage[0] if reply.usage else 0
    vector = {"object": "embedding", "index": 0, "embedding": [0.5, -0.5]}
    usage = {"prompt_tokens": read, "total_tokens": read}
    return {"object": "list", "data": [vector], "model": model, "usage": usage}

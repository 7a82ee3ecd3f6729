"""A stub model provider for tests: it sends scripted replies and failures, and stores the requests.

It serves OpenAI's chat completions, responses and embeddings, Anthropic's messages and Google's
generateContent, with and without streaming, over HTTP on loopback.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any, Self

from fumehood.testing.scripted_replies import ScriptedReply, events, whole


@dataclass(frozen=True, slots=True)
class AskedOfModel:
    """One request that the stub received."""

    path: str
    headers: dict[str, str]
    """Names are in lower case."""
    body: bytes

    @property
    def request(self) -> dict[str, Any]:
        """The body, parsed."""
        value: dict[str, Any] = json.loads(self.body)
        return value


def failed(reply: ScriptedReply) -> dict[str, Any]:
    """Return the body of a failure."""
    return {"error": {"message": reply.error, "type": "scripted"}}


Script = Sequence[ScriptedReply] | Callable[[AskedOfModel], ScriptedReply]
"""Replies in order, of which the last one repeats; or a function from a request to its reply."""


class ScriptedModels:
    """A context manager that serves scripted replies while it is open."""

    def __init__(self, script: Script) -> None:
        self.asked: list[AskedOfModel] = []
        self.list_status = 200
        """HTTP status of the response to a request for the list of models."""
        self._script = script
        self._lock = Lock()
        self._over = Event()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def address(self) -> str:
        """URL of the stub, without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, asked: AskedOfModel) -> ScriptedReply:
        """Store a request and return its reply."""
        with self._lock:
            number = len(self.asked)
            self.asked.append(asked)
        if callable(self._script):
            return self._script(asked)
        return self._script[min(number, len(self._script) - 1)]

    def pause(self, seconds: float | None) -> None:
        """Wait some seconds; with None, wait until the stub closes."""
        if seconds != 0:
            self._over.wait(seconds)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 512

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing, because tests close connections early."""


def _handler(models: ScriptedModels) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Headers and body are two writes; Nagle's algorithm would delay the second.
        disable_nagle_algorithm = True

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

        def do_GET(self) -> None:
            works = models.list_status == 200
            listed = {"object": "list", "data": []} if works else failed(ScriptedReply())
            with suppress(OSError):
                self._whole(models.list_status, listed, {})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = AskedOfModel(self.path, headers, body)
            with suppress(OSError):
                self._reply(asked, models.answer(asked))

        def _reply(self, asked: AskedOfModel, reply: ScriptedReply) -> None:
            request = asked.request
            if reply.hangs_up:
                self.close_connection = True
                return
            if reply.status == 200 and (request.get("stream") or "alt=sse" in asked.path):
                self._stream(asked, reply)
                return
            models.pause(reply.pause_s)
            is_whole = reply.status == 200
            model = str(request.get("model"))
            value = whole(asked.path, model, reply) if is_whole else failed(reply)
            self._whole(reply.status, value, reply.headers)

        def _whole(self, status: int, value: object, headers: Mapping[str, str]) -> None:
            text = json.dumps(value).encode()
            self._head(status, "application/json", {**headers, "content-length": str(len(text))})
            self.wfile.write(text)

        def _stream(self, asked: AskedOfModel, reply: ScriptedReply) -> None:
            request = asked.request
            self._head(200, "text/event-stream", {**reply.headers, "transfer-encoding": "chunked"})
            reports = bool((request.get("stream_options") or {}).get("include_usage"))
            parts = events(asked.path, str(request.get("model")), reply, reports=reports)
            for number, part in enumerate(parts):
                if number == reply.stalls_after:
                    models.pause(None)
                    self.close_connection = True
                    return
                models.pause(reply.pause_s)
                if number == 1 and reply.malformed:
                    self._chunk(reply.malformed)
                self._chunk(part)
            self._chunk(b"")

        def _chunk(self, part: bytes) -> None:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))

        def _head(self, status: int, content_type: str, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in {"content-type": content_type, **headers}.items():
                self.send_header(name, value)
            self.end_headers()

    return Handler

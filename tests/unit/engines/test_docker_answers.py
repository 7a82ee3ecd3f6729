"""Answers of a Docker daemon after which a request is repeated."""

from __future__ import annotations

import json
import socketserver
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Thread

import pytest

from fumehood.core.errors import InfraError
from fumehood.engines.docker.daemon import ATTEMPTS, Daemon

pytestmark = pytest.mark.slow

NOT_FROZEN = "Cannot pause container x: OCI runtime pause failed: unable to freeze: unknown"


@contextmanager
def daemon_that_answers(path: Path, statuses: list[int]) -> Iterator[Daemon]:
    """Serve the API of a daemon that answers each request for a pause with the next status."""

    class Handler(BaseHTTPRequestHandler):
        def address_string(self) -> str:
            return "local"

        def log_message(self, *_: object) -> None:
            """Print nothing."""

        def do_GET(self) -> None:
            self._answer(200, {"ApiVersion": "1.41"})

        def do_POST(self) -> None:
            status = statuses.pop(0)
            self._answer(status, {} if status < 300 else {"message": NOT_FROZEN})

        def _answer(self, status: int, value: dict[str, str]) -> None:
            body = b"" if status == 204 else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Api-Version", "1.41")
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with socketserver.ThreadingUnixStreamServer(str(path), Handler) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DOCKER_HOST", f"unix://{path}")
            daemon = Daemon()
        yield daemon
        daemon.close()
        server.shutdown()


def test_a_container_that_cannot_be_frozen_yet_is_paused_again(tmp_path: Path) -> None:
    statuses = [500, 500, 204]
    with daemon_that_answers(tmp_path / "s", statuses) as daemon:
        daemon.pause("x")
    assert statuses == []


def test_a_container_that_is_never_frozen_is_an_error_of_the_infrastructure(tmp_path: Path) -> None:
    statuses = [500] * ATTEMPTS
    with (
        daemon_that_answers(tmp_path / "s", statuses) as daemon,
        pytest.raises(InfraError, match="unable to freeze"),
    ):
        daemon.pause("x")
    assert statuses == []

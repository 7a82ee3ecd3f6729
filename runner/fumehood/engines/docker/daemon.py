"""What we ask of a Docker daemon: each question with a deadline, asked again only where that is harmless.

Containers are named by us, so a creation whose answer was lost is found again instead of made twice;
starting, stopping, waiting and removing mean the same the second time. Connections are kept and shared.
Knows nothing about agents or boxes.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

import requests
import urllib3
from docker import APIClient
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.transport import UnixHTTPAdapter
from docker.utils import kwargs_from_env
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from fumehood.core.errors import InfraError, InputError

T = TypeVar("T")

DEADLINE_S = 60
"""Per question. A daemon under load takes seconds; one that is stuck takes for ever."""
CONNECT_DEADLINE_S = 5
ATTEMPTS = 3
_DEFAULT_HOST = "unix:///var/run/docker.sock"


class _Busy(Exception):
    """The daemon is at it already."""


_PASSING = (requests.ConnectionError, requests.Timeout, _Busy)
"""The question or the answer was lost on the way, or came too early."""


class Daemon:
    """A client of one daemon on this machine. Safe to use from several threads."""

    def __init__(self) -> None:
        """Say where; nothing is asked yet.

        Raises:
            InputError: the environment names a daemon on another machine, which cannot share a folder.
        """
        settings = kwargs_from_env()
        self.host = str(settings.get("base_url") or _DEFAULT_HOST).replace(
            "http+unix://", "unix://"
        )
        if not self.host.startswith("unix://"):
            raise InputError(f"DOCKER_HOST is {self.host}, but boxes need a daemon on this machine")
        self._socket_path = self.host.removeprefix("unix://")

    @cached_property
    def client(self) -> APIClient:
        """The SDK's client, for what is asked seldom; wrap it in :meth:`asking`."""
        try:
            version = api_version(self._socket_path, CONNECT_DEADLINE_S)
        except OSError as error:
            raise InfraError(f"no Docker engine answers at {self.host}: {error}") from error
        client = APIClient(self.host, version=version, timeout=DEADLINE_S)
        client.mount("http+docker://", OnePool(self._socket_path, DEADLINE_S))
        # There is no proxy and no password on the way to a local socket.
        client.trust_env = False
        return client

    def info(self) -> dict[str, Any]:
        """Return what the daemon says about itself."""
        info: dict[str, Any] = self._ask("describe itself", self.client.info)
        return info

    def create(self, name: str, config: Mapping[str, Any]) -> None:
        """Create a container called ``name``, not yet running.

        Raises:
            InputError: its image is not here.
        """

        def create() -> None:
            try:
                self.client.create_container_from_config(config, name)  # type: ignore[no-untyped-call]
            except ImageNotFound as error:
                raise InputError(
                    f"there is no image {config['Image']!r} here; pull or build it"
                ) from error
            except APIError as error:
                if (
                    error.status_code != requests.codes.conflict
                ):  # Else it is ours: an answer was lost.
                    raise

        self._ask("create a container", create)

    def start(self, container: str) -> None:
        """Start a created container; returns when its process runs."""
        self._ask("start a container", lambda: self.client.start(container))

    def wait(self, container: str, timeout_s: float) -> int | None:
        """Return the exit status of a container, or None when it still runs after ``timeout_s``."""

        def wait() -> int | None:
            try:
                answer = self.client.wait(container, timeout=timeout_s)  # type: ignore[arg-type]  # Any number.
                return int(answer["StatusCode"])
            except requests.ReadTimeout:
                return None
            except requests.ConnectionError as error:
                # The daemon sends the head of its answer at once, so the wait is for the body.
                if error.args and isinstance(error.args[0], urllib3.exceptions.ReadTimeoutError):
                    return None
                raise

        return self._ask("wait for a container", wait)

    def was_out_of_memory(self, container: str) -> bool:
        """Tell whether the kernel stopped a container at its memory limit."""
        state = self._ask("inspect a container", lambda: self.client.inspect_container(container))[
            "State"
        ]
        return bool(state["OOMKilled"])

    def was_killed(self, container: str) -> bool:
        """Tell whether somebody had the daemon kill a container.

        Who kills its first process behind the daemon's back is not told from the agent's own end.
        """

        def look() -> bool:
            made = datetime.fromisoformat(self.client.inspect_container(container)["Created"])
            asked = {"container": container, "event": "kill"}
            # Whole seconds is all one can ask for, so this one has to be over.
            until = int(time.time()) + 1
            kills = self.client.events(since=int(made.timestamp()), until=until, filters=asked)
            return any(True for _ in kills)

        return self._ask("list what happened to a container", look)

    def first_process(self, container: str) -> int | None:
        """Return the host's number of a container's first process, or None when it does not run."""
        state = self._ask("inspect a container", lambda: self.client.inspect_container(container))[
            "State"
        ]
        return int(state["Pid"]) or None

    def kill(self, container: str) -> None:
        """Stop a container at once; does nothing when it does not run."""

        def kill() -> None:
            try:
                self.client.kill(container)
            except APIError as error:
                if error.status_code not in (requests.codes.not_found, requests.codes.conflict):
                    raise

        self._ask("kill a container", kill)

    def remove(self, container: str) -> None:
        """Stop a container if need be and remove it with its volumes; does nothing when it is gone."""

        def remove() -> None:
            try:
                self.client.remove_container(container, v=True, force=True)
            except NotFound:
                pass
            except APIError as error:
                if error.status_code == requests.codes.conflict:
                    raise _Busy(error.explanation) from error
                raise

        self._ask("remove a container", remove)

    def containers_with(self, label: str) -> list[tuple[str, dict[str, str]]]:
        """Return id and labels of every container that has ``label``, running or not."""
        found = self._ask(
            "list containers", lambda: self.client.containers(all=True, filters={"label": label})
        )
        return [(one["Id"], one["Labels"]) for one in found]

    def image(self, reference: str) -> dict[str, Any] | None:
        """Return what is known of an image, or None when it is not here."""

        def inspect() -> dict[str, Any] | None:
            try:
                found: dict[str, Any] = self.client.inspect_image(reference)  # type: ignore[no-untyped-call]
            except NotFound:
                return None
            return found

        return self._ask("inspect an image", inspect)

    def images_of(self, repositories: Iterable[str]) -> list[tuple[str, dict[str, str]]]:
        """Return reference and labels of every tagged image of these repositories."""

        def images() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = self.client.images()
            return found

        wanted = tuple(f"{repository}:" for repository in repositories)
        return [
            (reference, image["Labels"] or {})
            for image in self._ask("list images", images)
            for reference in image["RepoTags"] or ()
            if reference.startswith(wanted)
        ]

    def remove_image(self, reference: str) -> bool:
        """Remove an image's name, and the image where that was its last; False where a container uses it."""

        def remove() -> bool:
            try:
                self.client.remove_image(reference)
            except NotFound:
                pass
            except APIError as error:
                if error.status_code == requests.codes.conflict:
                    return False
                raise
            return True

        return self._ask("remove an image", remove)

    def has_file(self, container: str, path: str) -> bool:
        """Tell whether there is something at ``path`` in a container, running or not."""

        def look() -> bool:
            try:
                content, _ = self.client.get_archive(container, path)
            except NotFound:
                return False
            content.close()
            return True

        return self._ask("look into a container", look)

    def attach(self, container: str) -> socket.socket:
        """Return a stream of all that a container prints from now on, in frames.

        The SDK gives such a stream only with the deadline of its connection, and silence is no failure.
        """
        path = (
            f"/v{self.client.api_version}/containers/{container}/attach?stream=1&stdout=1&stderr=1"
        )
        try:
            return hijack(self._socket_path, path, DEADLINE_S)
        except OSError as error:
            raise InfraError(f"docker did not attach to a container: {error}") from error

    def close(self) -> None:
        """Close the connections."""
        if "client" in self.__dict__:
            self.client.close()

    def _ask(self, what: str, question: Callable[[], T]) -> T:
        retrying = Retrying(
            stop=stop_after_attempt(ATTEMPTS),
            wait=wait_exponential(multiplier=0.1, max=2),
            retry=retry_if_exception_type(_PASSING),
            reraise=True,
        )
        with self.asking(what):
            return retrying(question)

    @contextmanager
    def asking(self, what: str) -> Iterator[None]:
        """Say in our own words what the daemon or the way to it got wrong.

        Args:
            what: was asked, as in "docker did not …".

        Raises:
            InfraError: always, when something goes wrong.
        """
        try:
            yield
        except APIError as error:
            raise InfraError(f"docker refused to {what}: {error.explanation}") from error
        except _PASSING as error:
            raise InfraError(f"docker did not {what} in time ({self.host}): {error}") from error
        except DockerException as error:
            raise InfraError(f"docker did not {what}: {error}") from error


_CONNECTIONS_MAX = 64
"""Kept open between questions."""
_HEAD_BYTES_MAX = 64 * 1024


class OnePool(UnixHTTPAdapter):
    """Keeps connections by the daemon they lead to."""

    def __init__(self, path: str, deadline_s: int) -> None:
        super().__init__(f"http+unix://{path}", deadline_s, max_pool_size=_CONNECTIONS_MAX)

    def get_connection(self, url: Any, proxies: Any = None) -> Any:
        """Return the one pool, whatever the address."""
        return super().get_connection("http+docker://localhost", proxies)


def api_version(path: str, deadline_s: float) -> str:
    """Ask the daemon at ``path`` which version of the Docker Engine API it speaks.

    Raises:
        OSError: nobody answers, or somebody who is no Docker daemon.
    """
    stream, head = _ask(path, ["GET /_ping HTTP/1.1", "Connection: close"], deadline_s)
    stream.close()
    for line in head.splitlines():
        name, _, value = line.partition(":")
        if name.lower() == "api-version":
            return value.strip()
    raise ConnectionError("whoever answers is no Docker engine")


def hijack(path: str, address: str, deadline_s: float) -> socket.socket:
    """Turn a question into a plain stream without a deadline.

    Args:
        path: of the daemon's socket.
        address: of the question, with its version.
        deadline_s: for the daemon to agree.

    Raises:
        OSError: it does not.
    """
    question = [f"POST {address} HTTP/1.1", "Connection: Upgrade", "Upgrade: tcp"]
    stream, head = _ask(path, question, deadline_s)
    status = head.partition("\r\n")[0]
    if " 101 " not in status:
        stream.close()
        raise ConnectionError(status)
    stream.settimeout(None)
    return stream


def _ask(path: str, question: list[str], deadline_s: float) -> tuple[socket.socket, str]:
    stream = socket.socket(socket.AF_UNIX)
    try:
        stream.settimeout(deadline_s)
        stream.connect(path)
        stream.sendall("\r\n".join([*question, "Host: docker", "", ""]).encode())
        return stream, _read_head(stream)
    except OSError:
        stream.close()
        raise


def _read_head(stream: socket.socket) -> str:
    # What is attached to has not been started yet, so no part of its stream comes in the same piece.
    head = b""
    while b"\r\n\r\n" not in head and len(head) < _HEAD_BYTES_MAX:
        piece = stream.recv(4096)
        if not piece:
            raise ConnectionResetError("the connection was closed")
        head += piece
    return head.decode("latin-1")

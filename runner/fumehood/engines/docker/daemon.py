"""A client of a Docker daemon: every request has a deadline, and every retry is idempotent.

The client chooses the names of containers, so it finds a container again if the answer to its
creation was lost. Starting, stopping, waiting and removing are idempotent. Connections are kept and
shared.

The Docker SDK opens a new connection for each URL, applies the connection's deadline to an attached
stream, and leaves a connection open when no daemon answers. ``SharedPool``, ``hijack`` and
``api_version`` avoid that.
"""

from __future__ import annotations

import base64
import io
import json
import socket
import tarfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import requests
import urllib3
from docker import APIClient
from docker.errors import (
    APIError,
    DockerException,
    ImageNotFound,
    create_api_error_from_http_exception,
)
from docker.transport import UnixHTTPAdapter
from docker.utils import kwargs_from_env
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from fumehood.core.errors import InfraError, InputError
from fumehood.engines.docker.written import ContainerFiles
from fumehood.engines.engine import BEGIN_TIMEOUT_S, NotBegun, NotEnded, TooLarge

T = TypeVar("T")

DEADLINE_S = 60
"""Per request. A daemon under load takes seconds; a stuck one never answers."""
CONNECT_DEADLINE_S = 5
ATTEMPTS = 3
_NOT_FOUND, _CONFLICT = 404, 409
_ZOMBIE = "is zombie and can not be killed"
_NOT_FROZEN = "unable to freeze"
"""Control groups of version 1 cannot stop a thread that replaces its program. runc thaws the group
after its last try."""
_NOT_KILLED = "Could not kill running container"
_PATH_STATUS = "X-Docker-Container-Path-Stat"
_SMALL_BYTES_MAX = 64 * 1024
_CHANGES_BYTES_MAX = 256 << 20
_PIECE_BYTES = 1 << 20
_NOT_A_FILE = 0x8F28_0000
"""Bits of the mode of folders, links, devices, pipes and sockets. Source: Go, io/fs, ModeType."""
_DEFAULT_HOST = "unix:///var/run/docker.sock"


class Busy(Exception):
    """The daemon is removing the container, or could not pause it yet."""


_TRANSIENT = (requests.ConnectionError, requests.Timeout, Busy)
"""Errors after which a request is repeated."""


class Daemon:
    """A client of one daemon on this machine. Safe to use from several threads."""

    def __init__(self) -> None:
        """Read the daemon's address from the environment; send nothing.

        Raises:
            InputError: DOCKER_HOST names a daemon on another machine, which cannot share a folder.
        """
        settings = kwargs_from_env()
        host = str(settings.get("base_url") or _DEFAULT_HOST)
        self.host = host.replace("http+unix://", "unix://")
        if not self.host.startswith("unix://"):
            raise InputError(
                f"DOCKER_HOST is {self.host}, but boxes need a daemon on this machine; unset it"
            )
        self._socket_path = self.host.removeprefix("unix://")

    @cached_property
    def client(self) -> APIClient:
        """The SDK's client, for rare requests; wrap its use in :meth:`converting_errors`."""
        try:
            version = api_version(self._socket_path, CONNECT_DEADLINE_S)
        except PermissionError as error:
            raise InfraError(
                f"this user may not use the Docker engine at {self.host}: the administrator can "
                "add the user to the group docker, whose members have the rights of root"
            ) from error
        except OSError as error:
            raise InfraError(
                f"no Docker engine answers at {self.host}: {error}; "
                "install and start one (Debian: apt-get install docker.io)"
            ) from error
        client = APIClient(self.host, version=version, timeout=DEADLINE_S)
        client.mount("http+docker://", SharedPool(self._socket_path, DEADLINE_S))
        # A local socket needs no proxy and no password.
        client.trust_env = False
        return client

    def info(self) -> dict[str, Any]:
        """Return the daemon's answer to ``GET /info``."""
        info: dict[str, Any] = self._ask("describe itself", self.client.info)
        return info

    def create(self, name: str, config: Mapping[str, Any]) -> str:
        """Create a container called ``name``, not yet running, and return its ID.

        Raises:
            InputError: the image does not exist.
        """

        def create() -> str:
            try:
                return str(self.client.create_container_from_config(config, name)["Id"])  # type: ignore[no-untyped-call]
            except ImageNotFound as error:
                raise InputError(
                    f"there is no image {config['Image']!r} here; pull or build it"
                ) from error
            except APIError as error:
                # A conflict means that the answer to an earlier attempt was lost.
                if error.status_code != _CONFLICT:
                    raise
                return str(self.client.inspect_container(name)["Id"])

        return self._ask("create a container", create)

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
                # The daemon sends the header at once, so the timeout applies to the body.
                if error.args and isinstance(error.args[0], urllib3.exceptions.ReadTimeoutError):
                    return None
                raise

        return self._ask("wait for a container", wait)

    def was_out_of_memory(self, container: str) -> bool:
        """Return whether the kernel stopped a container at its memory limit."""
        return bool(self._inspected(container)["State"]["OOMKilled"])

    def was_killed(self, container: str) -> bool:
        """Return whether a request to the daemon killed a container.

        A signal sent directly to its first process cannot be distinguished from the agent's exit.
        """

        def look() -> bool:
            created = datetime.fromisoformat(self.client.inspect_container(container)["Created"])
            filters = {"container": container, "event": "kill"}
            # The API takes whole seconds, so the present second has to be over.
            until = int(time.time()) + 1
            kills = self.client.events(since=int(created.timestamp()), until=until, filters=filters)
            return any(True for _ in kills)

        return self._ask("list the events of a container", look)

    def first_process(self, container: str) -> int | None:
        """Return the host's process ID of a container's first process, or None if it does not
        run."""
        return int(self._inspected(container)["State"]["Pid"]) or None

    def kill(self, container: str) -> bool:
        """Stop a container at once; return whether it ran."""

        def kill() -> bool:
            try:
                self.client.kill(container)
            except APIError as error:
                # The process has ended, but a busy daemon has not noticed it within 10 s.
                if _ZOMBIE not in str(error.explanation):
                    raise
            return True

        return self._ask("kill a container", kill, {_NOT_FOUND: False, _CONFLICT: False})

    def pause(self, container: str) -> None:
        """Stop all processes of a container; has no effect if it is paused."""

        def pause() -> None:
            try:
                self.client.pause(container)
            except APIError as error:
                if _NOT_FROZEN in str(error.explanation):
                    raise Busy(error.explanation) from error
                raise

        self._ask("pause a container", pause, {_CONFLICT: None})

    def resume(self, container: str) -> None:
        """Continue the processes of a container; has no effect if it is not paused."""
        # The daemon answers with a server error if the container is not paused.
        if self._inspected(container)["State"]["Paused"]:
            self._ask("continue a container", lambda: self.client.unpause(container))

    def execute(
        self, container: str, command: Sequence[str], environment: Mapping[str, str]
    ) -> Callable[[], int | None]:
        """Start a command in a running container; return a function that returns its exit status,
        or None while it runs.

        Raises:
            NotBegun: the command does not begin in ``BEGIN_TIMEOUT_S``.
        """
        action = "run a command in a container"

        def create() -> str:
            created = self.client.exec_create(
                container, list(command), stdout=False, stderr=False, environment=dict(environment)
            )
            return str(created["Id"])

        number = self._ask(action, create)
        with self.converting_errors(action):
            # The request is not repeated, because a command can be started only once. If the
            # connection is lost, the command may run, although this is an error.
            self._begin(number)

        def status() -> int | None:
            facts = self._ask("wait for a command", lambda: self.client.exec_inspect(number))
            return None if facts["Running"] else int(facts["ExitCode"])

        return status

    def _begin(self, number: str) -> None:
        """Start a created command. ``APIClient.exec_start`` has no timeout."""
        address = f"{self.client.base_url}/v{self.client.api_version}/exec/{number}/start"
        settings = {"Detach": True, "Tty": False}
        try:
            self.client.post(address, json=settings, timeout=BEGIN_TIMEOUT_S).raise_for_status()
        except requests.HTTPError as error:
            create_api_error_from_http_exception(error)
        except requests.Timeout as error:
            raise NotBegun(f"a command did not begin in {BEGIN_TIMEOUT_S:.0f} s") from error

    def remove(self, container: str) -> None:
        """Stop and remove a container with its volumes; has no effect if it is gone.

        Raises:
            NotEnded: its processes do not end.
        """

        def remove() -> None:
            try:
                self.client.remove_container(container, v=True, force=True)
            except APIError as error:
                # A busy daemon has not noticed yet that the processes have ended.
                if error.status_code == _CONFLICT or _NOT_KILLED in str(error.explanation):
                    raise Busy(error.explanation) from error
                raise

        try:
            self._ask("remove a container", remove, {_NOT_FOUND: None})
        except InfraError as error:
            if _NOT_KILLED in str(error.__cause__):
                raise NotEnded(str(error)) from error
            raise

    def containers_with(self, label: str) -> list[tuple[str, dict[str, str]]]:
        """Return id and labels of every container that has ``label``, running or not."""
        containers = self._ask(
            "list containers", lambda: self.client.containers(all=True, filters={"label": label})
        )
        return [(container["Id"], container["Labels"]) for container in containers]

    def image(self, reference: str) -> dict[str, Any] | None:
        """Return the details of an image, or None if it does not exist."""

        def inspect() -> dict[str, Any] | None:
            details: dict[str, Any] = self.client.inspect_image(reference)  # type: ignore[no-untyped-call]
            return details

        return self._ask("inspect an image", inspect, {_NOT_FOUND: None})

    def save(self, reference: str, file: Path) -> None:
        """Write an image with all layers into a file, as `docker save` does."""
        with self.converting_errors("export an image"), file.open("wb") as archive:
            for piece in self.client.get_image(reference):
                archive.write(piece)

    def images_of(self, repositories: Iterable[str]) -> list[tuple[str, dict[str, str]]]:
        """Return reference and labels of every tagged image of these repositories."""

        images: list[dict[str, Any]] = self._ask("list images", self.client.images)
        wanted = tuple(f"{repository}:" for repository in repositories)
        return [
            (reference, image["Labels"] or {})
            for image in images
            for reference in image["RepoTags"] or ()
            if reference.startswith(wanted)
        ]

    def remove_image(self, reference: str) -> bool:
        """Remove a tag, and the image if that was its last; return False if a container uses it."""

        def remove() -> bool:
            self.client.remove_image(reference)
            return True

        return self._ask("remove an image", remove, {_NOT_FOUND: True, _CONFLICT: False})

    def path_status(self, container: str, path: str) -> dict[str, Any] | None:
        """Return the status of a path in a container, running or not; None if it does not exist.

        ``linkTarget`` is the target of a link, resolved inside the container.
        """

        def look() -> dict[str, Any] | None:
            address = f"/v{self.client.api_version}/containers/{container}/archive"
            answer = self.client.head(f"{self.client.base_url}{address}", params={"path": path})
            if answer.status_code == requests.codes.not_found:
                return None
            if not answer.ok:
                raise APIError(answer.reason, answer)
            status = json.loads(base64.b64decode(answer.headers[_PATH_STATUS]))
            return dict(status)

        return self._ask("read from a container", look)

    def small_file(self, container: str, path: str) -> bytes:
        """Return the content of a file in a container; empty if there is no such file, or if it is
        larger than 64 KiB."""

        def read() -> bytes:
            content, status = self.client.get_archive(container, path)
            with closing(content):
                # The size of a folder does not count its files, which the answer would contain.
                if status["mode"] & _NOT_A_FILE or not 0 < status["size"] <= _SMALL_BYTES_MAX:
                    return b""
                archive = io.BytesIO(b"".join(content))
            with tarfile.open(fileobj=archive) as files:
                entry = files.next()
                file = files.extractfile(entry) if entry is not None and entry.isreg() else None
                return file.read() if file else b""

        return self._ask("read from a container", read, {_NOT_FOUND: b""})

    def unpack(self, container: str, archive: bytes) -> None:
        """Unpack a tar at / in a container."""
        self._ask("write to a container", lambda: self.client.put_archive(container, "/", archive))

    def copy_out(self, container: str, path: str, bytes_max: int) -> bytes | None:
        """Return a path of a container as a tar; None if it does not exist.

        Raises:
            TooLarge: the tar has more than ``bytes_max`` bytes.
        """

        def read() -> bytes | None:
            content, _ = self.client.get_archive(container, path)
            archive = bytearray()
            with closing(content):
                for piece in content:
                    archive += piece
                    if len(archive) > bytes_max:
                        raise TooLarge(f"{path} has more than {bytes_max} bytes")
            return bytes(archive)

        return self._ask("read from a container", read, {_NOT_FOUND: None})

    def changes(self, container: str) -> list[tuple[str, int]]:
        """Return each path of a container that differs from its image, and how: 0 changed, 1 added,
        2 deleted.

        Raises:
            TooLarge: the answer has more than :data:`_CHANGES_BYTES_MAX` bytes.
        """

        def compare() -> Any:
            address = f"/v{self.client.api_version}/containers/{container}/changes"
            content = bytearray()
            with closing(
                self.client.get(f"{self.client.base_url}{address}", stream=True)
            ) as answer:
                if not answer.ok:
                    raise APIError(answer.reason, answer)
                for piece in answer.iter_content(_PIECE_BYTES):
                    content += piece
                    if len(content) > _CHANGES_BYTES_MAX:
                        raise TooLarge("the list of the changed paths of the workspace is too long")
            return json.loads(content)

        listed = self._ask("compare a container", compare)
        return [(str(entry["Path"]), int(entry["Kind"])) for entry in listed or ()]

    def host_files(self, container: str) -> ContainerFiles | None:
        """Return where the files of a container are on the host; None with a storage driver
        other than overlay2."""
        inspected = self._inspected(container)
        folders = inspected["GraphDriver"]["Data"] or {}
        if "UpperDir" not in folders:
            return None
        beside = ("HostsPath", "HostnamePath", "ResolvConfPath")
        return ContainerFiles(
            Path(folders["UpperDir"]),
            Path(folders["MergedDir"]),
            tuple(Path(inspected[name]) for name in beside if inspected.get(name)),
        )

    def written_bytes(self, container: str) -> int:
        """Return the size of the files of a container that differ from its image.

        Raises:
            InfraError: the daemon does not answer, or cannot list the files.
        """

        def look() -> int:
            address = f"/v{self.client.api_version}/containers/{container}/json"
            answer = self.client.get(f"{self.client.base_url}{address}", params={"size": "1"})
            return int(answer.json().get("SizeRw") or 0)

        size_bytes = self._ask("measure a container", look)
        if size_bytes < 0:
            raise InfraError(
                "docker cannot measure a container, for instance because of long paths"
            )
        return size_bytes

    def attach(self, container: str) -> socket.socket:
        """Return a stream of frames with all further output of a container, without a deadline."""
        streams = "stream=1&stdout=1&stderr=1"
        path = f"/v{self.client.api_version}/containers/{container}/attach?{streams}"
        try:
            return hijack(self._socket_path, path, DEADLINE_S)
        except OSError as error:
            raise InfraError(f"docker did not attach to a container: {error}") from error

    def close(self) -> None:
        """Close the connections."""
        if "client" in self.__dict__:
            self.client.close()

    def _inspected(self, container: str) -> dict[str, Any]:
        return self._ask("inspect a container", lambda: self.client.inspect_container(container))

    def _ask(
        self, action: str, request: Callable[[], T], answers: Mapping[int | None, T] | None = None
    ) -> T:
        """Repeat a request after transient errors; ``answers`` are results by HTTP status."""

        def ask() -> T:
            try:
                return request()
            except APIError as error:
                if answers is None or error.status_code not in answers:
                    raise
                return answers[error.status_code]

        retrying = Retrying(
            stop=stop_after_attempt(ATTEMPTS),
            wait=wait_exponential(multiplier=0.1, max=2),
            retry=retry_if_exception_type(_TRANSIENT),
            reraise=True,
        )
        with self.converting_errors(action):
            return retrying(ask)

    @contextmanager
    def converting_errors(self, action: str) -> Iterator[None]:
        """Convert errors of the SDK and of the connection to "docker did not ``action``".

        Raises:
            InfraError: on every such error.
        """
        try:
            yield
        except APIError as error:
            raise InfraError(f"docker refused to {action}: {error.explanation}") from error
        except _TRANSIENT as error:
            raise InfraError(f"docker did not {action} in time ({self.host}): {error}") from error
        except DockerException as error:
            raise InfraError(f"docker did not {action}: {error}") from error


_CONNECTIONS_MAX = 64
"""Kept open between requests."""
_HEAD_BYTES_MAX = 64 * 1024


class SharedPool(UnixHTTPAdapter):
    """Keeps one pool of connections for all URLs of a daemon."""

    def __init__(self, path: str, deadline_s: int) -> None:
        super().__init__(f"http+unix://{path}", deadline_s, max_pool_size=_CONNECTIONS_MAX)

    def get_connection(self, url: Any, proxies: Any = None) -> Any:
        """Return the same pool for every URL."""
        return super().get_connection("http+docker://localhost", proxies)


def api_version(path: str, deadline_s: float) -> str:
    """Ask the daemon at ``path`` which version of the Docker Engine API it speaks.

    Raises:
        OSError: no Docker daemon answers.
    """
    stream, head = _send(path, ["GET /_ping HTTP/1.1", "Connection: close"], deadline_s)
    stream.close()
    for line in head.splitlines():
        name, _, value = line.partition(":")
        if name.lower() == "api-version":
            return value.strip()
    raise ConnectionError("the socket does not belong to a Docker daemon")


def hijack(path: str, address: str, deadline_s: float) -> socket.socket:
    """Upgrade a request to a plain stream without a deadline.

    Args:
        path: of the daemon's socket.
        address: path of the URL, with the API version.
        deadline_s: for the daemon's answer.

    Raises:
        OSError: the daemon does not answer or refuses.
    """
    request = [f"POST {address} HTTP/1.1", "Connection: Upgrade", "Upgrade: tcp"]
    stream, head = _send(path, request, deadline_s)
    status = head.partition("\r\n")[0]
    if " 101 " not in status:
        stream.close()
        raise ConnectionError(status)
    stream.settimeout(None)
    return stream


def _send(path: str, request: list[str], deadline_s: float) -> tuple[socket.socket, str]:
    stream = socket.socket(socket.AF_UNIX)
    try:
        stream.settimeout(deadline_s)
        stream.connect(path)
        stream.sendall("\r\n".join([*request, "Host: docker", "", ""]).encode())
        return stream, _read_head(stream)
    except OSError:
        stream.close()
        raise


def _read_head(stream: socket.socket) -> str:
    # The container has not been started yet, so no output can follow the header.
    head = b""
    while b"\r\n\r\n" not in head and len(head) < _HEAD_BYTES_MAX:
        piece = stream.recv(4096)
        if not piece:
            raise ConnectionResetError("the connection was closed")
        head += piece
    return head.decode("latin-1")

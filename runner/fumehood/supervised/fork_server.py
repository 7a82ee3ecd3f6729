"""Starts a fork server, and processes from it. Safe to use from several threads.

::

    server = ForkServer({"square": "my_package.squares:square"}, modules=["my_package.squares"])
    answer = server.ask("square", {"number": 7}, Limits(cpu_s=5, deadline_s=10))

``ask`` runs ``square(question)`` in a new process and returns its answer, or how the process ended.
``start`` runs ``entry(channel, arguments)``, where ``channel`` is a socket to the caller.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Protocol

from fumehood.core.errors import InfraError, InputError
from fumehood.core.json_values import JsonObject
from fumehood.supervised.frames import receive_frame, send_frame
from fumehood.supervised.limits import Access, End, EndReason, Limits, end_from_json

PASSED_VARIABLES = frozenset(
    {"HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "PYTHONDONTWRITEBYTECODE"}
    | {"PYTHONHASHSEED", "PYTHONPATH", "PYTHONWARNINGS", "TZ", "VIRTUAL_ENV"}
)
"""Environment variables that a fork server gets. Others, such as API keys, stay in this process."""
LIBRARY_VARIABLES = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "GRPC_ENABLE_FORK_SUPPORT": "0",
    "GRPC_EXPERIMENTS": "-event_engine_client,-event_engine_listener",
}
"""Environment variables of a process that forks, for libraries in C and C++.

A process with several threads could not fork safely. Without its event engine, gRPC polls in the
thread that waits for the message, so a call takes nine tenths of the time and wakes fewer threads.
"""
READY_TIMEOUT_S = 120.0
"""Time for the imports."""
START_TIMEOUT_S = 30.0
"""Time from a request until a process has been forked."""
MARGIN_S = 15.0
"""How long after its deadline the end of a process may be reported."""
STOP_TIMEOUT_S = 10.0
ANSWER_BYTES_MAX = 64 << 20
_PACKET_BYTES = 128 * 1024


class Child:
    """A process that a fork server has forked."""

    def __init__(self, server: ForkServer, number: int, channel: socket.socket) -> None:
        self.channel = channel
        """Socket to the process. Its end means that the process has ended."""
        self.pid = 0
        """Process ID."""
        self.folder: Path | None = None
        """Its own folder; None if it has none."""
        self._server = server
        self._number = number
        self._started = Event()
        self._sealed = Event()
        self._ended = Event()
        self._end: End | None = None
        self._refusal = ""

    def kill(self) -> None:
        """Kill the process, if it has not ended."""
        self._server.kill(self._number)

    def seal_folder(self) -> None:
        """Forbid the process to create, rename and remove entries of its folder and of the folders
        in it.

        Has an effect only if root started the server; otherwise the filter of system calls makes
        links impossible.

        Raises:
            InfraError: the process has ended.
        """
        self._server.seal(self._number)
        if not self._sealed.wait(START_TIMEOUT_S) or self._ended.is_set():
            raise InfraError("the process of an episode ended before its folder was sealed")

    def wait(self, timeout_s: float | None = None) -> End | None:
        """Return how the process ended; None if it still runs after the timeout."""
        self._ended.wait(timeout_s)
        return self._end

    def on_started(self, pid: int, folder: str | None) -> None:
        """Called by the server's reader: the process exists."""
        self.pid = pid
        self.folder = Path(folder) if folder else None
        self._started.set()

    def on_sealed(self) -> None:
        """Called by the server's reader: the entries of the folder are fixed."""
        self._sealed.set()

    def on_refused(self, why: str) -> None:
        """Called by the server's reader: the process could not be forked."""
        self._refusal = why
        self.on_ended(End(EndReason.LOST))

    def on_ended(self, end: End) -> None:
        """Called by the server's reader: the process is gone."""
        self._end = end
        self._ended.set()
        self._started.set()
        self._sealed.set()

    def wait_until_started(self) -> None:
        """Wait until the process exists.

        Raises:
            InfraError: it could not be forked.
        """
        if not self._started.wait(START_TIMEOUT_S):
            self._server.forget(self._number)
            self.channel.close()
            raise InfraError(f"the fork server does not answer within {START_TIMEOUT_S:.0f} s")
        if self.pid == 0:
            self.channel.close()
            raise InfraError(f"no process could be forked: {self._refusal or 'the server ended'}")


class ServerProcess(Protocol):
    """A process that was forked from this one and waits for the settings of a fork server."""

    control: socket.socket
    pid: int

    def poll(self) -> int | None:
        """Return None while the process runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; raise ``TimeoutExpired`` after ``timeout`` seconds."""

    def kill(self) -> None:
        """Kill the process."""


class _NewInterpreter(subprocess.Popen[bytes]):
    """The process of a fork server that imports everything itself."""

    def __init__(self) -> None:
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            super().__init__(
                [*(sys.executable, "-P", "-m", "fumehood.supervised.serve"), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={
                    **{name: os.environ[name] for name in PASSED_VARIABLES & os.environ.keys()},
                    **LIBRARY_VARIABLES,
                },
            )


class ForkServer:
    """One fork server and the connection to it."""

    def __init__(
        self,
        entries: Mapping[str, str],
        *,
        modules: Sequence[str] = (),
        prepare: tuple[str, JsonObject] | None = None,
        folder: Path | None = None,
        process: ServerProcess | None = None,
        before: str | None = None,
        shared_user: int | None = None,
        wait: bool = True,
    ) -> None:
        """Start the server, which imports everything once.

        Args:
            entries: entry points by name, as ``module:function``. No other code is started.
            modules: modules to import before the first process is forked.
            prepare: a function, as ``module:function``, and its argument; called once in the
                server, so that every process starts with its effects. It must start no thread.
            folder: where the own folders of processes are created; None for no such folders.
            process: becomes the server; None for a new interpreter.
            before: a function, as ``module:function``, that the server calls with the arguments of
                each request that has some, so that later processes start with its effects.
            shared_user: the user that the server becomes after ``prepare``, if root starts it. Its
                processes share that user; they have no output, no sockets and no signals. None for
                one user for each process, if root starts the server.
            wait: wait until the server has imported everything; otherwise the caller calls
                ``wait_until_ready``, and no thread is started before.

        Raises:
            InputError: ``prepare`` raised it.
            InfraError: the server does not start.
        """
        self._lock = Lock()
        self._children: dict[int, Child] = {}
        self._last = 0
        self._process: ServerProcess = process or _NewInterpreter()
        self._control = self._process.control
        settings = {
            "entries": dict(entries),
            "modules": list(modules),
            "prepare": prepare,
            "folder": str(folder) if folder else None,
            "before": before,
            "shared_user": shared_user,
        }
        # A server that has ended already is reported when it does not become ready.
        with suppress(BrokenPipeError, ConnectionResetError):
            self._control.send(json.dumps(settings).encode())
        self.holds: tuple[str, ...] = ()
        """The parts of the confinement that hold on this machine, such as ``network``."""
        self._reader = Thread(target=self._read, name="fork-server", daemon=True)
        if wait:
            self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """Wait until the server has imported everything.

        Raises:
            InputError: ``prepare`` raised it.
            InfraError: the server does not start.
        """
        self.holds = self._wait_until_ready()
        self._reader.start()

    @property
    def alive(self) -> bool:
        """Whether the server runs."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """Process ID of the server."""
        return self._process.pid

    def start(
        self,
        entry: str,
        arguments: JsonObject,
        limits: Limits,
        access: Access | None = None,
        files: Sequence[int] = (),
        *,
        wait: bool = True,
    ) -> Child:
        """Fork a process that runs ``entry(channel, arguments)``.

        Args:
            entry: name of an entry point.
            arguments: of the entry point; with ``access.folder`` the process also gets ``folder``.
                At most 100 kB as JSON; send more through the channel.
            limits: its limits.
            access: what it may reach; None for nothing but Python's files.
            files: further descriptors, at most three. The process gets their numbers there as the
                argument ``files``.
            wait: wait until the process exists; otherwise the caller calls ``wait_until_started``.

        Raises:
            InfraError: no process can be forked.
        """
        child = self._request(
            entry, arguments, limits, access or Access(), answers=False, files=files
        )
        if wait:
            child.wait_until_started()
        return child

    def ask(
        self, entry: str, question: JsonObject, limits: Limits, access: Access | None = None
    ) -> JsonObject | End:
        """Return the answer of ``entry(question)`` in a new process, or how that ended without one.

        Args:
            entry: name of an entry point.
            question: its argument.
            limits: limits of the process.
            access: what it may reach; None for nothing but Python's files.

        Raises:
            InfraError: no process can be forked, or the server has ended or does not answer.
        """
        answer = self.ask_bytes(entry, json.dumps(question).encode(), limits, access)
        if isinstance(answer, End):
            return answer
        try:
            reply = json.loads(answer)
        except (ValueError, RecursionError):
            reply = {"failed": "its answer is not JSON"}
        match reply:
            case {"answer": dict(fields)}:
                return fields
            case {"failed": why}:
                return End(EndReason.FAILED, 1, detail=str(why))
        return End(EndReason.FAILED, 1, detail="its answer is not valid")

    def ask_bytes(
        self,
        entry: str,
        question: bytes,
        limits: Limits,
        access: Access | None = None,
        arguments: JsonObject | None = None,
    ) -> bytes | End:
        """Return what a new process sent as its answer, unread, or how it ended without one.

        The answer is a JSON object with ``answer`` or ``failed``, unless code in the process wrote
        something else.

        Args:
            entry: name of an entry point.
            question: its argument, a JSON object.
            limits: limits of the process.
            access: what it may reach; None for nothing but Python's files.
            arguments: replace fields of the question; ``before`` gets them.

        Raises:
            InfraError: no process can be forked, or the server has ended or does not answer.
        """
        child = self._request(entry, arguments or {}, limits, access or Access(), answers=True)
        child.wait_until_started()
        with child.channel as channel:
            patience_s = None if limits.deadline_s is None else limits.deadline_s + MARGIN_S
            channel.settimeout(patience_s)
            try:
                # A process that has ended reads nothing; the reason follows.
                with suppress(BrokenPipeError, ConnectionResetError):
                    send_frame(channel, question)
                reply = _reply(channel)
            except TimeoutError:
                child.kill()
                raise InfraError(f"the fork server kills nothing after {patience_s} s") from None
        if reply is not None:
            child.kill()  # Code in the process could go on.
            return reply
        end = child.wait(MARGIN_S)
        if end is None:  # It closed the channel itself.
            child.kill()
            end = End(EndReason.FAILED, 1, detail="it sent no answer")
        if end.reason is EndReason.LOST:
            raise InfraError("the fork server has ended")
        return end

    def forget(self, number: int) -> None:
        """Kill a process that has not started yet, as soon as it has."""
        self._children.pop(number, None)

    def kill(self, number: int) -> None:
        """Kill a process by its number at this server."""
        self._send({"do": "kill", "number": number})

    def seal(self, number: int) -> None:
        """Seal the folder of a process by its number at this server."""
        self._send({"do": "seal", "number": number})

    def close(self) -> None:
        """End the server and all its processes."""
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            with suppress(PermissionError):
                self._process.kill()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_TIMEOUT_S)
        if self._reader.is_alive():
            self._reader.join(STOP_TIMEOUT_S)
        self._control.close()

    def _request(
        self,
        entry: str,
        arguments: JsonObject,
        limits: Limits,
        access: Access,
        *,
        answers: bool,
        files: Sequence[int] = (),
    ) -> Child:
        own_end, server_end = socket.socketpair()
        with server_end:
            with self._lock:
                self._last += 1
                number = self._last
                child = self._children[number] = Child(self, number, own_end)
            request: JsonObject = {
                "do": "start",
                "number": number,
                "entry": entry,
                "arguments": arguments,
                "answers": answers,
                "limits": asdict(limits),
                "access": asdict(access),
            }
            try:
                self._send(request, server_end.fileno(), *files)
            except InfraError:
                self._children.pop(number, None)
                own_end.close()
                raise
        return child

    def _send(self, request: JsonObject, *files: int) -> None:
        try:
            with self._lock:
                socket.send_fds(self._control, [json.dumps(request).encode()], files)
        except OSError as error:
            if files:
                raise InfraError(f"the fork server has ended: {error.strerror}") from None

    def _wait_until_ready(self) -> tuple[str, ...]:
        self._control.settimeout(READY_TIMEOUT_S)
        try:
            packet = self._control.recv(_PACKET_BYTES)
        except (TimeoutError, ConnectionResetError):  # It may end before it reads its settings.
            packet = b""
        self._control.settimeout(None)
        reply = json.loads(packet) if packet else {}
        if "ready" in reply:
            return tuple(reply["ready"])
        self._process.kill()
        self._process.wait()
        self._control.close()
        if "invalid" in reply:
            raise InputError(reply["invalid"])
        raise InfraError("a fork server ended before it was ready; its error is above")

    def _read(self) -> None:
        with suppress(OSError):
            while packet := self._control.recv(_PACKET_BYTES):
                self._dispatch(json.loads(packet))
        with self._lock:
            left = list(self._children.values())
            self._children.clear()
        for child in left:
            child.on_ended(End(EndReason.LOST))

    def _dispatch(self, reply: dict[str, object]) -> None:
        match reply:
            case {"started": int(number), "pid": int(pid), "folder": str() | None as folder}:
                if child := self._children.get(number):
                    child.on_started(pid, folder)
                else:  # Its caller does not wait any more.
                    self.kill(number)
            case {"sealed": int(number)}:
                if child := self._children.get(number):
                    child.on_sealed()
            case {"refused": int(number), "why": str(why)}:
                if child := self._children.pop(number, None):
                    child.on_refused(why)
            case {"ended": int(number), "end": dict(end)}:
                if child := self._children.pop(number, None):
                    child.on_ended(end_from_json(end))


def _reply(channel: socket.socket) -> bytes | None:
    try:
        return receive_frame(channel, ANSWER_BYTES_MAX)
    except ConnectionResetError:
        return None

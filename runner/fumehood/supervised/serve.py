"""The fork server: a process that imports modules once and forks confined children on request.

It has one thread and one socket, which it inherits from its owner. When the owner closes the
socket, the server ends with all its children. It holds no secrets. Only its owner sends it
requests, so it may keep the rights of root, which it needs to give each child another user.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import json
import os
import resource
import secrets
import select
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.core.user_ids import EPISODE_UIDS
from fumehood.supervised.confinement import confine, leave_network
from fumehood.supervised.frames import receive_frame, send_frame
from fumehood.supervised.late_imports import import_late
from fumehood.supervised.limits import (
    CRASH_SIGNALS,
    Access,
    End,
    EndReason,
    Limits,
    access_from_json,
)
from fumehood.supervised.preference import LOOK_S, Preference, become_preferred
from fumehood.supervised.progress import read_progress
from fumehood.supervised.system_calls import build_filter
from fumehood.supervised.users import UserLease

PACKET_BYTES = 128 * 1024
"""Size of one request or reply."""
FILES_MAX = 4
"""File descriptors of one request."""
PROBE_TIMEOUT_S = 10.0
STALLED_CPU_S_MAX = 2.0
"""A child that has run for longer than this until its deadline was not stalled, however busy the
machine is."""
LATE_S = 1.0
"""If this server is later than this, something has stopped it, and perhaps its children."""
ENTRIES_MAX = 64
"""Files and folders in a child's folder that this server removes itself."""
REMOVAL_TIMEOUT_S = 0.5
"""How long the removal of a child's folder may delay other requests."""
FAILED_STATUS = 1
MEMORY_STATUS = 77
"""Exit status of a child that ran out of memory in Python code."""
_CLONE_NEWNET = 0x4000_0000
_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 4, 38


@dataclass(slots=True)
class _Running:
    """A child that has not ended."""

    number: int
    """Of the request that started it; 0 for the probe."""
    pid: int
    pidfd: int
    limits: Limits
    deadline: float | None
    """On the monotonic clock."""
    lease: UserLease | None
    folder: Path | None
    preference: Preference | None = None
    """Its priority; None if that does not change."""
    killed: EndReason | None = None
    """Why this server has killed it."""


def main(control_fd: int) -> None:
    """Serve the requests of the socket ``control_fd`` until its other end is closed."""
    control = socket.socket(fileno=control_fd)
    for signal_number in (signal.SIGINT, signal.SIGHUP):  # The owner decides when to stop.
        signal.signal(signal_number, signal.SIG_IGN)
    settings = json.loads(control.recv(PACKET_BYTES))
    with suppress(BrokenPipeError):  # The owner has ended.
        try:
            server = _Server(control, settings)
        except InputError as error:
            control.send(json.dumps({"invalid": str(error)}).encode())
            return
        control.send(json.dumps({"ready": server.probe()}).encode())
        server.serve()


class _Server:
    def __init__(self, control: socket.socket, settings: dict[str, Any]) -> None:
        """Import everything that children need."""
        self._control = control
        self._pid = os.getpid()
        self._is_root = os.geteuid() == 0
        self._nice = os.getpriority(os.PRIO_PROCESS, 0)
        self._root = Path(settings["folder"]) if settings["folder"] else None
        self._has_network = self._is_root or not leave_network()
        import_late(*settings["modules"])
        self._entries = {name: _function(path) for name, path in settings["entries"].items()}
        if settings["prepare"]:
            path, arguments = settings["prepare"]
            _function(path)(arguments)
        self._before = _function(settings["before"]) if settings["before"] else None
        self._shares_user = settings["shared_user"] is not None
        self._filters = {
            starts: build_filter(starts_programs=starts, shares_user=self._shares_user)
            for starts in (False, True)
        }
        if self._shares_user:
            self._share_user(settings["shared_user"])
        self._running: dict[int, _Running] = {}
        self._looked_s = time.monotonic()
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        gc.collect()
        gc.freeze()  # Otherwise a collection in a child would copy the pages of all objects.

    def _share_user(self, uid: int) -> None:
        """Give up the rights of root, and protect this process from children with its user."""
        libc = ctypes.CDLL(None)
        if self._is_root:
            self._is_root, self._has_network = False, libc.unshare(_CLONE_NEWNET) != 0
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)

    def probe(self) -> list[str]:
        """Return the names of the protections that work on this machine."""
        own_end, child_end = socket.socketpair()
        with own_end:
            with child_end:
                child = self._fork(0, _report, [child_end.fileno()], {}, Limits(), Access())
            own_end.settimeout(PROBE_TIMEOUT_S)
            report = receive_frame(own_end)
        self._end(child)
        holds: list[str] = json.loads(report) if report else []
        return holds

    def serve(self) -> None:
        """Handle requests, ends and deadlines until the owner closes the socket."""
        try:
            while True:
                ready = {fd for fd, _ in self._poll.poll(self._next_deadline_ms())}
                for child in [
                    running for running in self._running.values() if running.pidfd in ready
                ]:
                    self._end(child)
                self._kill_late()
                self._look_at_priorities()
                if self._control.fileno() in ready and not self._handle_request():
                    return
        finally:
            for child in list(self._running.values()):
                _kill(child, EndReason.REQUESTED)
            for child in list(self._running.values()):
                self._end(child)

    def _handle_request(self) -> bool:
        """Handle one request; return False if the owner is gone."""
        try:
            packet, files, _, _ = socket.recv_fds(self._control, PACKET_BYTES, FILES_MAX)
        except OSError:
            return False
        if not packet:
            return False
        request = json.loads(packet)
        if request["do"] == "kill":
            child = self._running.get(request["number"])
            if child is not None:
                _kill(child, EndReason.REQUESTED)
            return True
        if request["do"] == "seal":
            self._seal(request["number"])
            return True
        try:
            if self._before is not None and request["arguments"]:
                self._before(request["arguments"])
            self._start(request, files)
        except Exception as error:
            why = str(error) if isinstance(error, OSError) else repr(error)[:1000]
            self._send({"refused": request["number"], "why": why})
        finally:
            for file in files:
                os.close(file)
        return True

    def _start(self, request: dict[str, Any], files: Sequence[int]) -> None:
        work = _answer if request["answers"] else _work
        child = self._fork(
            request["number"],
            lambda socket, arguments: work(self._entries[request["entry"]], socket, arguments),
            files,
            request["arguments"],
            Limits(**request["limits"]),
            access_from_json(request["access"]),
        )
        self._send(
            {
                "started": child.number,
                "pid": child.pid,
                "folder": str(child.folder) if child.folder else None,
            }
        )

    def _fork(
        self,
        number: int,
        work: Callable[[socket.socket, JsonObject], None],
        files: Sequence[int],
        arguments: JsonObject,
        limits: Limits,
        access: Access,
    ) -> _Running:
        """Fork a child and return it; in the child, run ``work`` and do not return."""
        lease, folder = self._reserve(access)
        try:
            pid = os.fork()
        except OSError:
            _release(lease, folder)
            raise
        if pid == 0:
            run_child(
                lambda: _confined(
                    files,
                    lambda: self._confine_child(limits, access, lease, folder),
                    work,
                    {
                        **arguments,
                        **({"folder": str(folder)} if folder else {}),
                        **({"files": list(files[1:])} if len(files) > 1 else {}),
                    },
                    is_silent=self._shares_user,
                )
            )
        deadline = None if limits.deadline_s is None else time.monotonic() + limits.deadline_s
        try:
            pidfd = os.pidfd_open(pid)
        except OSError:  # No descriptor is free.
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            _release(lease, folder)
            raise
        child = _Running(number, pid, pidfd, limits, deadline, lease, folder)
        if self._is_preferred(limits):
            assert limits.preferred_cpu_s is not None
            now = time.monotonic()
            child.preference = Preference(pid, limits.preferred_cpu_s, self._nice, now)
        self._running[number] = child
        self._poll.register(child.pidfd, select.POLLIN)
        return child

    def _confine_child(
        self, limits: Limits, access: Access, lease: UserLease | None, folder: Path | None
    ) -> list[str]:
        if self._is_preferred(limits):
            become_preferred(self._nice)
        return confine(
            limits,
            access,
            uid=lease.uid if lease else None,
            folder=str(folder) if folder else None,
            server_pid=self._pid,
            has_network=self._has_network,
            program=self._filters[access.starts_programs],
        )

    def _is_preferred(self, limits: Limits) -> bool:
        # Only root may give a process that is no longer busy its priority.
        return self._is_root and self._nice < 0 and limits.preferred_cpu_s is not None

    def _reserve(self, access: Access) -> tuple[UserLease | None, Path | None]:
        """Return the user and the folder of a child, or reserve nothing and raise ``OSError``."""
        if access.folder and self._root is None:
            raise OSError("this fork server has no folder for children")
        lease = UserLease(EPISODE_UIDS) if self._is_root else None
        if self._root is None or not access.folder:
            return lease, None
        # Short, because the path of a socket has at most 107 bytes.
        folder = self._root / secrets.token_urlsafe(6)
        try:
            self._create_folder(folder, lease)
        except OSError:
            _release(lease, folder)
            raise
        return lease, folder

    def _create_folder(self, folder: Path, lease: UserLease | None) -> None:
        folder.mkdir(mode=0o700)
        if lease is not None:
            # The parent folder may belong to another user, who could replace this one by a link.
            folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            os.fchown(folder_fd, lease.uid, lease.uid)
            os.close(folder_fd)

    def _seal(self, number: int) -> None:
        """Take a child's folder, and the folders in it, from the child."""
        child = self._running.get(number)
        if child is not None and child.folder is not None and child.lease is not None:
            # From the top, so that the child cannot replace what is below.
            for path, _, _, folder_fd in os.fwalk(child.folder):
                os.fchown(folder_fd, 0, child.lease.uid)
                if path == str(child.folder):
                    os.fchmod(folder_fd, 0o750)
        self._send({"sealed": number})

    def _end(self, child: _Running) -> None:
        """Wait for the end of a child, release its resources, and report the end."""
        cpu_s_max = _cpu_limit(child)
        _, status, usage = os.wait4(child.pid, 0)
        self._poll.unregister(child.pidfd)
        os.close(child.pidfd)
        del self._running[child.number]
        _release(child.lease, child.folder)
        if child.number:
            self._send(
                {"ended": child.number, "end": _end_of(child, status, usage, cpu_s_max).to_json()}
            )

    def _next_deadline_ms(self) -> float | None:
        deadlines = [
            child.deadline
            for child in self._running.values()
            if child.deadline is not None and child.killed is None
        ]
        if any(child.preference for child in self._running.values()):
            deadlines.append(self._looked_s + LOOK_S)
        if not deadlines:
            return None
        return max(0.0, min(deadlines) - time.monotonic()) * 1000 + 1

    def _look_at_priorities(self) -> None:
        now = time.monotonic()
        if now - self._looked_s >= LOOK_S:
            self._looked_s = now
            for child in self._running.values():
                if child.preference is not None:
                    child.preference.look(now)

    def _kill_late(self) -> None:
        now = time.monotonic()
        for child in self._running.values():
            if child.deadline is None or child.deadline > now or child.killed is not None:
                continue
            assert child.limits.deadline_s is not None
            if now - child.deadline > LATE_S:
                child.deadline = now + child.limits.deadline_s
            else:
                _kill(child, EndReason.STALLED if _is_stalled(child) else EndReason.DEADLINE)

    def _send(self, reply: JsonObject) -> None:
        with suppress(OSError):  # The owner is gone, which the next poll reports.
            self._control.send(json.dumps(reply).encode())


def _release(lease: UserLease | None, folder: Path | None) -> None:
    try:
        if folder is not None:
            _remove(folder)
    finally:
        if lease is not None:
            lease.release()


def _remove(folder: Path) -> None:
    """Remove the folder of a child that has ended.

    The child may have filled it with a tree that is too deep or too large for this process; then
    another program removes it. This server does not wait long for that.
    """
    with suppress(OSError):
        os.rmdir(folder)  # Needs no descriptor, and none may be free.
        return
    try:
        _remove_few(folder, ENTRIES_MAX)
        return
    except FileNotFoundError:
        return
    except OSError:
        pass  # More than a few entries.
    # Without a free descriptor, the folder is removed with that of the owner.
    with suppress(subprocess.TimeoutExpired, OSError):
        removing = subprocess.Popen(["rm", "-rf", "--", str(folder)], stderr=subprocess.DEVNULL)
        removing.wait(REMOVAL_TIMEOUT_S)


def _remove_few(path: Path | str, entries_max: int, parent_fd: int | None = None) -> int:
    """Remove a folder, and return how many more entries may be removed; follows no link.

    Raises:
        OSError: it has more than ``entries_max`` entries, or one cannot be removed.
    """
    folder_fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent_fd)
    try:
        with os.scandir(folder_fd) as entries:
            for entry in entries:
                entries_max -= 1
                if entries_max < 0:
                    raise OSError(errno.E2BIG, os.strerror(errno.E2BIG), str(path))
                if entry.is_dir(follow_symlinks=False):
                    entries_max = _remove_few(entry.name, entries_max, folder_fd)
                else:
                    os.unlink(entry.name, dir_fd=folder_fd)
    finally:
        os.close(folder_fd)
    os.rmdir(path, dir_fd=parent_fd)
    return entries_max


def _is_stalled(child: _Running) -> bool:
    """Return whether a child was stopped, or waited for a processor most of the time."""
    progress = read_progress(child.pid)
    if progress is None or child.limits.deadline_s is None:
        return False
    is_starved = progress.waited_s() > child.limits.deadline_s / 2
    return progress.is_stopped or (is_starved and progress.ran_s < STALLED_CPU_S_MAX)


def _kill(child: _Running, reason: EndReason) -> None:
    child.killed = child.killed or reason
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(child.pidfd, signal.SIGKILL)


def _cpu_limit(child: _Running) -> float:
    """Return the processor time from which a kill counts as exceeding the limit.

    A child may lower its own limit, to be killed as if by an outsider. The kernel does not count
    exactly the time that it reports at the end.
    """
    os.waitid(os.P_PIDFD, child.pidfd, os.WEXITED | os.WNOWAIT)
    # prlimit(2) on another user's process needs a capability; this file does not.
    with suppress(OSError):
        for line in Path(f"/proc/{child.pid}/limits").read_text(encoding="ascii").splitlines():
            match line.split():
                case ["Max", "cpu", "time", _, hard, *_] if hard.isdigit():
                    if int(hard) < child.limits.cpu_s:
                        return int(hard) / 2
    return child.limits.cpu_s


def _end_of(child: _Running, status: int, usage: resource.struct_rusage, cpu_s_max: float) -> End:
    cpu_s, peak_bytes = usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        reason = {0: EndReason.EXITED, MEMORY_STATUS: EndReason.MEMORY}.get(code, EndReason.FAILED)
        return End(reason, code, cpu_s, peak_bytes)
    signal_number = -code
    if signal_number == signal.SIGXCPU or (signal_number == signal.SIGKILL and cpu_s > cpu_s_max):
        return End(EndReason.CPU, signal_number, cpu_s, peak_bytes)
    if signal_number == signal.SIGKILL and child.killed is not None:
        return End(child.killed, signal_number, cpu_s, peak_bytes)
    # Native code that gets no memory usually aborts.
    if signal_number in CRASH_SIGNALS and peak_bytes > child.limits.memory_bytes // 2:
        return End(EndReason.MEMORY, signal_number, cpu_s, peak_bytes)
    return End(EndReason.SIGNAL, signal_number, cpu_s, peak_bytes)


def run_child(work: Callable[[], None]) -> NoReturn:
    """Run ``work`` and end this process in every case."""
    status = FAILED_STATUS
    try:
        work()
        status = 0
    except MemoryError:
        status = MEMORY_STATUS
    except BaseException:
        with suppress(BaseException):
            traceback.print_exc()
    finally:
        os._exit(status)


def _confined(
    files: Sequence[int],
    confine_process: Callable[[], list[str]],
    work: Callable[[socket.socket, JsonObject], None],
    arguments: JsonObject,
    *,
    is_silent: bool,
) -> None:
    """Close all other files, confine this process and work. ``files[0]`` is the channel."""
    kept_fds = sorted(files)
    ends = [*kept_fds, resource.getrlimit(resource.RLIMIT_NOFILE)[0]]
    for before, after in zip([2, *kept_fds], ends, strict=True):
        os.closerange(before + 1, after)
    _leave_terminal(everything=is_silent)
    for signal_number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(signal_number, signal.SIG_DFL)
    holds = confine_process()
    with socket.socket(fileno=files[0]) as end:
        work(end, {**arguments, "holds": list(holds)} if work is _report else arguments)


def _leave_terminal(*, everything: bool) -> None:
    """Replace a terminal: this process could read what its user types, and write escapes to it.

    With ``everything``, replace also files and pipes.
    """
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        if everything or os.isatty(stream):
            os.dup2(null, stream)
    os.close(null)


def _report(channel: socket.socket, arguments: JsonObject) -> None:
    send_frame(channel, json.dumps(arguments["holds"]).encode())


def _work(
    entry: Callable[[socket.socket, JsonObject], None],
    channel: socket.socket,
    arguments: JsonObject,
) -> None:
    entry(channel, arguments)


def _answer(
    entry: Callable[[JsonObject], JsonObject], channel: socket.socket, arguments: JsonObject
) -> None:
    question = receive_frame(channel)
    if question is None:
        return
    try:
        answer = {"answer": entry({**json.loads(question), **arguments})}
    except MemoryError:
        raise
    except Exception as error:
        send_frame(channel, json.dumps({"failed": repr(error)[:1000]}).encode())
        raise
    send_frame(channel, json.dumps(answer).encode())


def _function(path: str) -> Callable[..., Any]:
    module, _, name = path.partition(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


if __name__ == "__main__":
    main(int(sys.argv[1]))

"""Entry points for the tests of the fork server."""

from __future__ import annotations

import ctypes
import fcntl
import json
import mmap
import os
import platform
import resource
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path

from fumehood.core.errors import InputError
from fumehood.core.json_values import JsonObject
from fumehood.supervised.frames import receive_frame, send_frame

_MSEAL = 462
"""On all processors, since Linux 6.10."""
_F_SETSIG = 10
_FIOSETOWN = 0x8901
prepared: list[JsonObject] = []


def prepare(arguments: JsonObject) -> None:
    """Keep the arguments for every process."""
    if "invalid" in arguments:
        raise InputError(str(arguments["invalid"]))
    prepared.append(arguments)


def answer(question: JsonObject) -> JsonObject:
    """Return the question and what the process was prepared with."""
    return {"question": question, "prepared": list(prepared), "pid": os.getpid()}


def fail(question: JsonObject) -> JsonObject:
    """Raise an exception."""
    raise ValueError(f"cannot use {question}")


def hang(question: JsonObject) -> JsonObject:
    """Compute for hours in one call that never releases the interpreter's lock."""
    return {"digits": len(str(pow(3, 10**10)))}


def sleep(question: JsonObject) -> JsonObject:
    """Wait for an hour."""
    time.sleep(3600)
    return {}


def allocate(question: JsonObject) -> JsonObject:
    """Use 4 GiB."""
    return {"bytes": len(bytearray(4 << 30))}


def die(question: JsonObject) -> JsonObject:
    """Crash."""
    ctypes.string_at(0)
    return {}


def abort(question: JsonObject) -> JsonObject:
    """Crash as native code does that finds an error."""
    ctypes.CDLL(None).abort()
    return {}


def attempt(question: JsonObject) -> JsonObject:
    """Try to leave the confinement, and report what was possible."""
    outside = str(question["outside"])
    return {
        "reads": _can(lambda: Path(outside).read_text(encoding="utf-8")),
        "lists": _can(lambda: os.listdir("/")),
        "writes": _can(lambda: Path(outside).with_name("written").write_text("")),
        "network": _can(lambda: socket.socket(socket.AF_INET)),
        "starts a program": _can(lambda: os.execv("/bin/true", ["true"])),
        "forks": _can(lambda: os.waitpid(os.fork() or os._exit(0), 0)),
        "traces": ctypes.CDLL(None).ptrace(0, 0, 0, 0) == 0,
        # Without a length, the call has no effect.
        "makes a later call": ctypes.CDLL(None).syscall(_MSEAL, 0, 0, 0) == 0,
        "signals its parent": _can(lambda: os.kill(os.getppid(), 0)),
        "starts a thread": _can(_start_thread),
        "limits its parent": _can(lambda: resource.prlimit(os.getppid(), resource.RLIMIT_CORE)),
        "slows its parent": _can(lambda: os.sched_setaffinity(os.getppid(), range(1024))),
        "slows its group": _can(lambda: os.setpriority(os.PRIO_PGRP, 0, 1)),
        "slows its user": _can(lambda: os.setpriority(os.PRIO_USER, 0, 1)),
        "stops itself": _can(lambda: os.kill(os.getpid(), signal.SIGSTOP)),
        "kills itself": _can(lambda: os.kill(os.getpid(), signal.SIGKILL)),
        "signals a process of its user": _can(lambda: os.kill(os.getpid(), 0)),
        "chooses a signal of a file": _can(lambda: fcntl.fcntl(0, _F_SETSIG, signal.SIGSTOP)),
        "chooses a signal with unused bits": _chooses_signal_with_unused_bits(),
        "gets the signals of a socket": _can(_own_socket),
        "slows itself": _can(lambda: os.nice(1)),
        "is at a terminal": any(map(os.isatty, range(3))),
        "user": os.getuid(),
        "core": resource.getrlimit(resource.RLIMIT_CORE)[1],
        "files": len(os.listdir("/proc/self/fd")),
    }


def _chooses_signal_with_unused_bits() -> bool:
    """Return whether fcntl(2) chooses a signal if a bit is set that the kernel does not read."""
    command = ctypes.c_long(1 << 32 | _F_SETSIG)
    libc = ctypes.CDLL(None)
    call = {"x86_64": 72, "aarch64": 25}[platform.machine()]
    return bool(libc.syscall(call, 0, command, signal.SIGSTOP) == 0)


def _own_socket() -> None:
    # A pair, because another rule rejects some sockets.
    first, second = socket.socketpair()
    with first, second:
        fcntl.ioctl(first, _FIOSETOWN, struct.pack("i", os.getpid()))


def reach(question: JsonObject) -> JsonObject:
    """Try to use the sockets of other programs at the paths in the question."""

    def connect() -> None:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(question["stream"]))

    def send() -> None:
        sender, other = socket.socketpair(type=socket.SOCK_DGRAM)
        with sender, other:
            sender.sendto(b"", str(question["any"]))

    return {"connects": _can(connect), "sends": _can(send)}


def leave_message(question: JsonObject) -> JsonObject:
    """Try to leave, on a program of the machine, what another process can notice."""
    file = os.open("/usr/bin/env", os.O_RDONLY)
    folder = os.open("/usr/bin", os.O_RDONLY)
    record = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 0, 1, 0)
    could: JsonObject = {
        "locks the file": _can(lambda: fcntl.flock(file, fcntl.LOCK_SH)),
        "locks a record": _can(lambda: fcntl.fcntl(file, fcntl.F_SETLK, record)),
        "locks a record for the open file": _can(
            lambda: fcntl.fcntl(file, fcntl.F_OFD_SETLK, record)
        ),
        "reads locks": _can(lambda: fcntl.fcntl(file, fcntl.F_GETLK, record)),
        "watches the folder": _can(lambda: fcntl.fcntl(folder, fcntl.F_NOTIFY, fcntl.DN_RENAME)),
        "plans reads": _can(lambda: os.posix_fadvise(file, 0, 0, os.POSIX_FADV_NORMAL)),
    }
    for descriptor in (file, folder):  # Also ends the watch, which would send a signal.
        os.close(descriptor)
    return could


_PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
_GROWS_DOWN = 0x100
"""MAP_GROWSDOWN. Source: mmap(2)."""


def share(question: JsonObject) -> JsonObject:
    """Take memory that RLIMIT_DATA does not count: shared memory, and addresses, whose page tables
    the kernel allocates when they are read."""
    zero = {"flags": mmap.MAP_SHARED, "prot": mmap.PROT_READ}
    private = {"flags": _PRIVATE, "prot": mmap.PROT_READ}
    return {
        "file in memory": _can(lambda: os.memfd_create("file")),
        "shared mapping": _can(lambda: mmap.mmap(-1, mmap.PAGESIZE)),
        "mapping of 512 GiB": _can(lambda: mmap.mmap(-1, 512 << 30, **private)),
        "growing mapping": _can(lambda: mmap.mmap(-1, mmap.PAGESIZE, _PRIVATE | _GROWS_DOWN)),
        "mapping of /dev/zero": _can(
            lambda: mmap.mmap(os.open("/dev/zero", os.O_RDONLY), mmap.PAGESIZE, **zero)
        ),
    }


def echo(channel: socket.socket, arguments: JsonObject) -> None:
    """Write into the own folder, then return every message until the channel ends."""
    if "folder" in arguments:
        (Path(str(arguments["folder"])) / "mine").write_text("kept", encoding="utf-8")
    while (message := receive_frame(channel)) is not None:
        send_frame(channel, message)


def listen(channel: socket.socket, arguments: JsonObject) -> None:
    """Listen in the own folder, and send the paths of all sockets that this process can see."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{arguments['folder']}/socket")
        lines = Path("/proc/self/net/unix").read_text(encoding="utf-8").splitlines()
        send_frame(channel, "\n".join(line for line in lines if "/" in line).encode())
        receive_frame(channel)


def nest(channel: socket.socket, arguments: JsonObject) -> None:
    """Nest folders deeper than Python can remove them."""
    os.chdir(str(arguments["folder"]))
    for _ in range(2000):
        os.mkdir("deeper")
        os.chdir("deeper")


def lower_limit(channel: socket.socket, arguments: JsonObject) -> None:
    """Lower the processor time at which the kernel kills this process, and compute."""
    resource.setrlimit(resource.RLIMIT_CPU, (1, 1))
    while True:
        pass


def replace_seat(channel: socket.socket, arguments: JsonObject) -> None:
    """Create a folder, and report how it can be changed when a message arrives."""
    folder = Path(str(arguments["folder"]))
    (folder / "seat").mkdir()
    send_frame(channel, b"created")
    receive_frame(channel)
    could = {
        "links": _can(lambda: (folder / "link").symlink_to("/etc")),
        "renames": _can(lambda: (folder / "seat").rename(folder / "other")),
        "removes": _can((folder / "seat").rmdir),
        "opens the folder for others": _can(lambda: folder.chmod(0o777)),
    }
    if (folder / "seat").exists():
        could["writes"] = _can(lambda: (folder / "seat" / "file").write_text(""))
        could["fills"] = _can((folder / "seat" / "folder").mkdir)
    send_frame(channel, json.dumps(could).encode())
    receive_frame(channel)


def wait_for_channel(channel: socket.socket, arguments: JsonObject) -> None:
    """Ignore the channel and wait for an hour."""
    send_frame(channel, b"started")
    time.sleep(3600)


def work_on_request(channel: socket.socket, arguments: JsonObject) -> None:
    """Compute after the message ``1``, and wait after ``0``."""
    send_frame(channel, b"started")
    while request := channel.recv(1):
        channel.setblocking(request == b"0")
        while request == b"1":
            try:
                request = channel.recv(1)
            except BlockingIOError:
                sum(range(10_000))
        channel.setblocking(True)


def _start_thread() -> None:
    thread = threading.Thread(target=len, args=("",))
    thread.start()
    thread.join()


def _can(action: Callable[[], object]) -> bool:
    try:
        action()
    except OSError:
        return False
    return True

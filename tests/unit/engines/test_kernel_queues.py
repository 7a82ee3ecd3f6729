"""The size of queues of the kernel."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from contextlib import ExitStack
from queue import Queue
from threading import Event

import pytest

from fumehood.core.errors import InfraError
from fumehood.engines.engine import ExitReason
from fumehood.engines.kernel_queues import QueueWatch, queued_bytes

KIB = 1 << 10
DEVICE_REQUEST = struct.pack("=IHHII BBHiII", 32, 18, 1, 0, 0, 0, 0, 0, 1, 0, 0)
"""Asks for the loopback device. Source: linux/rtnetlink.h."""


def test_unread_messages_of_netlink_count() -> None:
    before = queued_bytes(os.getpid())
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as one:
        for _ in range(20):
            one.send(DEVICE_REQUEST)
        assert queued_bytes(os.getpid()) >= before + 20 * KIB


def test_data_on_unaccepted_connections_counts_until_they_are_accepted() -> None:
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        before = queued_bytes(os.getpid())
        for _ in range(4):
            with socket.create_connection(server.getsockname()) as connection:
                connection.sendall(bytes(64 * KIB))
        assert queued_bytes(os.getpid()) >= before + 4 * 64 * KIB
        for _ in range(4):
            stack.enter_context(server.accept()[0])
        assert queued_bytes(os.getpid()) < before + 4 * 64 * KIB


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::1", "::"])
def test_data_on_reset_connections_counts_until_they_are_accepted(host: str) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(listening(host))
        before = queued_bytes(os.getpid())
        for _ in range(200):
            reset_after(server, bytes(64 * KIB))
        # The kernel counts up to a megabyte of each processor later.
        assert queued_bytes(os.getpid()) >= before + 150 * 64 * KIB
        for _ in range(200):
            stack.enter_context(server.accept()[0])
        assert queued_bytes(os.getpid()) < before + 150 * 64 * KIB


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::1", "::"])
def test_listed_connections_are_not_counted_as_reset_ones(host: str) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(listening(host))
        before = queued_bytes(os.getpid())
        for _ in range(100):
            stack.enter_context(socket.create_connection(server.getsockname()[:2]))
        assert before + 100 * 4 * KIB <= queued_bytes(os.getpid()) < before + 150 * 4 * KIB


def test_listed_connections_of_a_port_do_not_hide_reset_ones_of_another_address() -> None:
    with ExitStack() as stack:
        one = stack.enter_context(listening("127.0.0.1"))
        port = one.getsockname()[1]
        other = stack.enter_context(socket.create_server(("127.0.0.2", port), backlog=1000))
        before = queued_bytes(os.getpid())
        for _ in range(100):
            stack.enter_context(socket.create_connection(other.getsockname()))
            reset_after(one, b"")
        assert queued_bytes(os.getpid()) >= before + 200 * 4 * KIB


COME_AND_GO = """
import socket, sys
address = ("127.0.0.1", int(sys.argv[1]))
print(flush=True)
while True:
    with socket.create_server(address, backlog=1000, reuse_port=True):
        connections = [socket.socket() for _ in range(300)]
        for connection in connections:
            connection.setblocking(False)
            connection.connect_ex(address)
    for connection in connections:
        connection.close()
"""


def test_connections_that_come_and_go_on_the_same_port_do_not_hide_reset_ones() -> None:
    with ExitStack() as stack:
        # The reset connections fill its queue, so all others reach the other socket.
        server = socket.create_server(("127.0.0.1", 0), backlog=99, reuse_port=True)
        stack.enter_context(server)
        command = [sys.executable, "-c", COME_AND_GO, str(server.getsockname()[1])]
        before = queued_bytes(os.getpid())
        for _ in range(100):
            reset_after(server, bytes(64 * KIB))
        busy = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
        stack.callback(busy.kill)
        assert busy.stdout is not None
        busy.stdout.readline()
        shared = set[bytes]()
        looks = [queued_bytes(os.getpid(), shared_ports=shared) for _ in range(40)]
        assert sum(look >= before + 50 * 64 * KIB for look in looks) >= 0.9 * len(looks)


def test_a_port_on_which_two_sockets_listened_counts_as_shared_later() -> None:
    shared = set[bytes]()
    with socket.create_server(("127.0.0.1", 0), reuse_port=True) as one:
        with socket.create_server(one.getsockname(), reuse_port=True):
            queued_bytes(os.getpid(), shared_ports=shared)
        queued_bytes(os.getpid(), shared_ports=shared)
        assert f"{one.getsockname()[1]:04X}".encode() in shared


BUSY_SERVER = """
import socket
from threading import Thread
def ask():
    while True:
        with socket.create_connection(server.getsockname()) as connection:
            connection.sendall(b"question")
            connection.recv(100)
with socket.create_server(("127.0.0.1", 0), backlog=200) as server:
    for _ in range(40):
        Thread(target=ask, daemon=True).start()
    print(flush=True)
    while True:
        with server.accept()[0] as accepted:
            accepted.recv(100)
            accepted.sendall(b"answer")
"""


def test_a_server_with_more_clients_than_it_can_answer_gets_no_data_of_others() -> None:
    command = [sys.executable, "-c", BUSY_SERVER]
    with ExitStack() as stack:
        other = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        for _ in range(100):
            connection = stack.enter_context(socket.create_connection(other.getsockname()))
            stack.enter_context(other.accept()[0])
            connection.sendall(bytes(64 * KIB))
        busy = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
        stack.callback(busy.kill)
        assert busy.stdout is not None
        busy.stdout.readline()
        looks = [queued_bytes(os.getpid()) for _ in range(10)]
        assert sum(look < 50 * 64 * KIB for look in looks) >= 0.6 * len(looks)


def test_closed_connections_do_not_count() -> None:
    before = queued_bytes(os.getpid())
    with socket.create_server(("127.0.0.1", 0)) as server:
        for _ in range(200):
            with socket.create_connection(server.getsockname()):
                server.accept()[0].close()
    assert queued_bytes(os.getpid()) < before + 200 * 4 * KIB


def test_the_coarse_bound_includes_reset_connections() -> None:
    with listening("127.0.0.1") as server:
        for _ in range(900):
            reset_after(server, b"")
        assert queued_bytes(os.getpid(), limit_bytes=1 << 40) >= queued_bytes(os.getpid())
        assert queued_bytes(os.getpid(), limit_bytes=1 << 40) >= 900 * 4 * KIB


def test_the_coarse_bound_is_not_below_the_queues() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        for _ in range(60):
            with socket.create_connection(server.getsockname()) as connection:
                connection.sendall(bytes(64 * KIB))
        queued = queued_bytes(os.getpid())
        assert queued >= 60 * 64 * KIB
        bound = queued_bytes(os.getpid(), limit_bytes=1 << 40)
        assert queued <= bound
        assert queued_bytes(os.getpid(), limit_bytes=60 * KIB) < bound, "exact above the limit"


def test_an_ended_process_has_no_queues() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    assert queued_bytes(pid) == 0


def test_a_box_that_cannot_be_examined_does_not_end_the_watch() -> None:
    looks = Queue[str]()
    watch = QueueWatch()
    watch.add(Unexamined(looks))
    assert [looks.get(timeout=10) for _ in range(2)] == ["fails", "ended"]
    watch.add(Unexamined(looks))
    assert looks.get(timeout=10) == "fails"


@pytest.mark.slow
def test_a_check_that_waits_does_not_delay_the_next_one() -> None:
    looks = Queue[str]()
    QueueWatch().add(Unexamined(looks, delay_s=0.2))
    looks.get(timeout=10)
    assert looks.get(timeout=1.5) == "ended"


def listening(host: str) -> socket.socket:
    """Return a socket that listens; it accepts no connection until ``accept`` is called."""
    if ":" not in host:
        return socket.create_server((host, 0), backlog=1000)
    try:
        return socket.create_server((host, 0), backlog=1000, family=socket.AF_INET6)
    except OSError:
        pytest.skip("this machine has no IPv6")


def reset_after(server: socket.socket, data: bytes) -> None:
    """Connect to a server, send data, and reset the connection."""
    with socket.create_connection(server.getsockname()[:2]) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.sendall(data)


class Unexamined:
    """A box that a daemon is removing at the first look, and has removed at the second."""

    name = "unexamined"

    def __init__(self, looks: Queue[str], delay_s: float = 0) -> None:
        self._left = iter(["fails", "ended"])
        self._looks = looks
        self._answered, self._delay_s = Event(), delay_s

    def host_pid(self) -> int | None:
        answer = next(self._left)
        self._looks.put(answer)
        self._answered.wait(self._delay_s)  # As a busy daemon.
        if answer == "fails":
            raise InfraError("the daemon does not answer")
        return None

    def kill(self, reason: ExitReason = ExitReason.KILLED) -> None:
        raise AssertionError

"""A Ray cluster whose machines are processes of this host with addresses of the loopback range."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from fumehood.core.errors import InfraError
from fumehood.orchestrator.ray_cluster import FIRST_CALL, RESOURCE
from fumehood.wire.authentication import refuses_without_token

# Not pytest.importorskip: Ray would install its signal handlers in the process of the tests.
NEEDS_RAY = pytest.mark.skipif(find_spec("ray") is None, reason="the extra `ray` is not installed")
RAY = Path(sys.executable).with_name("ray")
START_S = 120
START_ATTEMPTS = 4
"""Ray gives up 30 s after the start of a machine, which a busy host can exceed."""


class RayMachines:
    """A head and machines with one node each; a context manager."""

    def __init__(self, machines: int, *, has_token: bool = True) -> None:
        """Start the cluster.

        Args:
            machines: that play episodes; the head plays none.
            has_token: whether callers need a token.
        """
        self._network = f"127.{secrets.randbelow(200) + 20}.{secrets.randbelow(250) + 1}"
        token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(24)}
        self.variables: Mapping[str, str] = token if has_token else {"RAY_AUTH_MODE": "disabled"}
        """What a caller of the cluster needs in its environment."""
        # Paths of sockets have at most 107 bytes, so the folder is not below that of the test.
        self._folder = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))
        # Ray's control service listens on all addresses, so clusters need different ports.
        self._port, client_port = _free_port(), _free_port()
        head = ("--head", f"--port={self._port}", f"--ray-client-server-port={client_port}")
        client = f"{self._network}.1:{client_port}"
        self.on = f"ray://{client}"
        self._machines: list[subprocess.Popen[bytes]] = []
        try:
            self._machines.append(
                self._started(1, *head, "--include-dashboard=false", f"--temp-dir={self._folder}")
            )
            self._wait_for(client)
            for number in range(machines):
                self._machines.append(self._joined(number))
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def restart(self, number: int) -> None:
        """Kill what is left of a machine, and start it again."""
        self.kill_machine(number)
        self._machines[number + 1].wait()
        self._machines[number + 1] = self._joined(number)

    def node(self, number: int) -> int:
        """Return the process ID of the node of a machine, from 0, when it has one."""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            for pid in _below(self.raylet(number)):
                if "ray::NodeActor" in _command(pid):
                    return pid
            time.sleep(0.1)
        raise TimeoutError(f"machine {number} has no node")

    def raylet(self, number: int) -> int:
        """Return the process ID of Ray's daemon of a machine."""
        return next(
            pid
            for pid in _below(self._machines[number + 1].pid)
            if Path(_command(pid).split("\0")[0]).name == "raylet"
        )

    def kill_machine(self, number: int) -> None:
        """Kill all processes of a machine at once."""
        pids = list(_below(self._machines[number + 1].pid))
        for pid in (self._machines[number + 1].pid, *pids):
            _kill(pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number in range(-1, len(self._machines) - 1):
            self.kill_machine(number)
        for process in self._machines:
            process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _joined(self, number: int) -> subprocess.Popen[bytes]:
        address = f"--address={self._network}.1:{self._port}"
        return self._started(number + 2, address, f'--resources={{"{RESOURCE}": 1}}')

    def _started(self, last: int, *words: str) -> subprocess.Popen[bytes]:
        for _ in range(START_ATTEMPTS):
            process = self._start(last, *words)
            try:
                while process.poll() is None:
                    if "Ray runtime started" in self._output(last).read_text():
                        return process
                    time.sleep(0.1)
            except BaseException:
                # It is not yet in the list of machines, whose processes the end of this one kills.
                for pid in (process.pid, *_below(process.pid)):
                    _kill(pid)
                process.wait()
                raise
        raise TimeoutError(self._output(last).read_text())

    def _output(self, last: int) -> Path:
        return self._folder / f"{last}.txt"

    def _start(self, last: int, *words: str) -> subprocess.Popen[bytes]:
        # With --block its processes end with the command.
        command = [
            *(str(RAY), "start", "--block", "--disable-usage-stats", "--num-cpus=1"),
            *(f"--node-ip-address={self._network}.{last}", "--object-store-memory=80000000"),
            *("--min-worker-port=0", "--max-worker-port=0", *words),
        ]
        with self._output(last).open("wb") as output:
            return subprocess.Popen(
                command,
                env={**os.environ, **self.variables},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def _wait_for(self, client: str) -> None:
        deadline = time.monotonic() + START_S
        while True:
            try:
                refuses_without_token(client, FIRST_CALL, 5)
                return
            except InfraError:
                if time.monotonic() > deadline or self._machines[0].poll() is not None:
                    raise
                time.sleep(0.2)


def _free_port() -> int:
    with socket.create_server(("", 0)) as server:
        return int(server.getsockname()[1])


def _below(pid: int) -> list[int]:
    """Return the processes that a process started, and theirs."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                stat = (entry / "stat").read_text(errors="replace")
            except OSError:
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    found, below = {pid}, list[int]()
    for child in sorted(parents):
        above, chain = child, set[int]()
        while above in parents and above not in chain and above not in found:
            chain.add(above)
            above = parents[above]
        if above in found and child != pid:
            below.append(child)
    return below


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return

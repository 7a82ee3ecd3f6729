"""A second Docker daemon, which a test can stop and kill without touching the machine's."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.chaos.commands import Process, children_of
from tests.parts.listening import wait_until

PATIENCE_S = 90.0
_OWN_NETWORK = ("unshare", "--net")
"""A daemon without a bridge removes docker0, which in this namespace is not the machine's."""
_NO_NETWORK = ("--bridge=none", "--iptables=false", "--ip6tables=false")


class PrivateDocker:
    """A daemon with its own folders, socket and containerd. A context manager; needs root."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._socket = folder / "docker.sock"
        self._daemon: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._folder.mkdir()
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        for name in self.containers():
            self._docker("rm", "--force", name)
        self.kill(self.daemon, signal.SIGCONT)
        self.kill(self.daemon, signal.SIGTERM)
        if self._daemon is not None:
            with suppress(subprocess.TimeoutExpired):
                self._daemon.wait(PATIENCE_S)
        for process in self.containerd():
            process.kill()
        for line in Path("/proc/self/mounts").read_text("utf-8").splitlines():
            if (place := line.split()[1]).startswith(f"{self._folder}/"):
                subprocess.run(["umount", "--lazy", place], check=False)
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def environment(self) -> dict[str, str]:
        """Variables with which a command uses this daemon."""
        return {"DOCKER_HOST": f"unix://{self._socket}"}

    @property
    def daemon(self) -> Process | None:
        """The daemon; None if it has never run."""
        return None if self._daemon is None else Process.of(self._daemon.pid)

    def containerd(self) -> list[Process]:
        """Return the daemon's own containerd."""
        mark = f"{self._folder}/".encode()
        return [
            process
            for process in children_of(1, *([self._daemon.pid] if self._daemon else []))
            if b"containerd" in process.command().split(b"\0")[0] and mark in process.command()
        ]

    def start(self) -> None:
        """Start the daemon and wait until it answers."""
        places = {"data-root": "data", "exec-root": "exec", "pidfile": "pid"}
        options = [f"--{name}={self._folder / place}" for name, place in places.items()]
        with suppress(FileNotFoundError):
            (self._folder / "pid").unlink()
        with open(self._folder / "log", "ab") as log:
            self._daemon = subprocess.Popen(
                [*_OWN_NETWORK, "dockerd", *options, f"--host=unix://{self._socket}", *_NO_NETWORK],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        answers = wait_until(lambda: self._docker("info").returncode == 0, PATIENCE_S)
        assert answers, (self._folder / "log").read_text("utf-8")[-2000:]

    def kill(self, process: Process | None, number: int = signal.SIGKILL) -> None:
        """Send a signal to the daemon or to its containerd."""
        if process is not None:
            process.kill(number)

    def wait_until_dead(self) -> None:
        """Collect the daemon."""
        assert self._daemon is not None
        self._daemon.wait(PATIENCE_S)

    def recover(self, image: str) -> None:
        """Start the daemon if it does not run, and wait until it can run a container again."""
        if self._daemon is None or self._daemon.poll() is not None:
            self.start()
        words = ("run", "--rm", "--network=none", "--entrypoint=python3", image, "-c", "pass")
        # A daemon starts its killed containerd again after some seconds.
        assert wait_until(lambda: self._docker(*words).returncode == 0, PATIENCE_S)

    def copy_image(self, name: str) -> None:
        """Copy an image from the machine's daemon."""
        with subprocess.Popen(["docker", "save", name], stdout=subprocess.PIPE) as save:
            subprocess.run(
                ["docker", "load"],
                stdin=save.stdout,
                env=os.environ | self.environment,
                check=True,
                capture_output=True,
            )

    def containers(self) -> list[str]:
        """Return the containers that exist."""
        return self._docker("ps", "-aq").stdout.split()

    def _docker(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["docker", *words],
            env=os.environ | self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

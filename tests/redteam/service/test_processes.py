"""A service process: its end, its signals and the permissions of its sockets."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from fumehood.orchestrator.service_pool import ServiceWorker
from fumehood.wire.control_client import ControlClient
from fumehood_agent.session import Session
from tests.parts.folders import short_folder
from tests.parts.listening import Listened, listening
from tests.parts.specs import episode_spec

STOP_TIMEOUT_S = 8.0
"""Time in which a service ends after a signal."""


def test_a_ctrl_c_in_the_terminal_does_not_reach_it(lasting_worker: ServiceWorker) -> None:
    """Running episodes continue until the orchestrator stops the service."""
    assert os.getpgid(lasting_worker.pid) != os.getpgid(0)
    assert os.getsid(lasting_worker.pid) != os.getsid(0)


@pytest.mark.slow
@pytest.mark.parametrize("open_episodes", [0, 3])
def test_it_ends_with_the_process_that_started_it(open_episodes: int) -> None:
    with served("s", "--until-stdin-closes") as service:
        sockets = _opened(service.client, open_episodes)
        assert service.process.stdin is not None
        service.process.stdin.close()
        assert service.process.wait(STOP_TIMEOUT_S) == 0
        assert not any(path.exists() for path in sockets)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_after_a_signal(number: signal.Signals) -> None:
    with served("s") as service:
        sockets = _opened(service.client, 2)
        service.process.send_signal(number)
        assert service.process.wait(STOP_TIMEOUT_S) == 0
        assert not any(path.exists() for path in sockets)


@pytest.mark.slow
@pytest.mark.parametrize("umask", ["000", "022", "077"])
def test_only_a_box_can_reach_a_socket(umask: str) -> None:
    with served("s", umask=umask) as service, listening(service.client, episode_spec()) as episode:
        folder = Path(episode.directory)
        # The process of an episode has its own user, who must enter the folder of the service.
        assert _mode(service.directory) == (0o711 if os.geteuid() == 0 else 0o700)
        # If root started the service, the folder is root's, so that no seat folder can be replaced.
        assert _mode(folder.parent) == (0o750 if os.geteuid() == 0 else 0o700)
        assert _mode(folder) == 0o755
        assert _mode(folder / "grpc.sock") == 0o666
        assert [path.name for path in folder.iterdir()] == ["grpc.sock"]


@pytest.mark.slow
def test_it_reports_absolute_paths_of_sockets() -> None:
    with served("s") as service, listening(service.client, episode_spec()) as episode:
        assert Path(episode.directory).is_absolute()
        assert Path(episode.directory, "grpc.sock").is_socket()


@dataclass(frozen=True, slots=True)
class Served:
    """A service that was started by its command."""

    directory: Path
    process: subprocess.Popen[bytes]
    client: ControlClient


@contextmanager
def served(directory: str, *options: str, umask: str = "022") -> Iterator[Served]:
    """Start a service by its command, with a folder relative to the current one."""
    with short_folder() as parent, ExitStack() as stack:
        command = [
            "/bin/sh",
            "-c",
            f'umask {umask}; exec "$0" -m fumehood serve "$@"',
            sys.executable,
        ]
        process = subprocess.Popen(
            [*command, directory, *options], stdin=subprocess.PIPE, cwd=parent
        )
        stack.enter_context(process)
        stack.callback(process.kill)
        client = ControlClient(f"{parent}/{directory}/control.sock")
        stack.callback(client.close)
        client.wait_until_ready(20)
        yield Served(Path(parent, directory), process, client)


def _opened(client: ControlClient, count: int) -> list[Path]:
    """Open episodes, each with an open stream of an agent; return their sockets."""
    sockets = []
    for number in range(count):
        episode = Listened(client, episode_spec(episode_id=str(number)))
        sockets.append(Path(episode.directory, "grpc.sock"))
        Session(sockets[-1]).call("get_account", {"id": "ax1"})
    return sockets


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)

"""The image of the sandbox service."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer

from fumehood.core.user_ids import SERVICE_UID
from fumehood.wire.control_client import ControlClient
from fumehood.wire.ports import Opened
from fumehood_agent.seat import Value
from fumehood_agent.session import Session
from tests.architecture.project import ROOT
from tests.parts.specs import episode_spec

pytestmark = [pytest.mark.docker, pytest.mark.image]

IMAGE = "fumehood/service:tested"
BUILD_TIMEOUT_S = 120
ANSWER_TIMEOUT_S = 30.0


@pytest.fixture(scope="module")
def sockets() -> Iterator[Path]:
    with TemporaryDirectory(prefix="gs-") as folder:
        Path(folder).chmod(0o711)
        os.chown(folder, SERVICE_UID, SERVICE_UID)
        yield Path(folder)


@pytest.fixture(scope="module")
def container(sockets: Path) -> Iterator[DockerContainer]:
    if os.geteuid() != 0:
        pytest.skip("only root can hand a folder to the service's user")
    build = [str(ROOT / "sandbox_images/service/build"), IMAGE]
    subprocess.run(build, check=True, capture_output=True, timeout=BUILD_TIMEOUT_S)
    # Its reaper is an image that would have to be fetched; the with statement below stops what it
    # started.
    testcontainers_config.ryuk_disabled = True
    service = DockerContainer(IMAGE).with_command(f"{sockets}/s")
    service.with_volume_mapping(str(sockets), str(sockets), "rw")
    service.with_kwargs(
        network_mode="none",
        read_only=True,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
        pids_limit=512,
        mem_limit="1g",
        stdin_open=True,
    )
    with service:
        yield service


@pytest.fixture(scope="module")
def client(container: DockerContainer, sockets: Path) -> Iterator[ControlClient]:
    connected = ControlClient(f"{sockets}/s/control.sock")
    try:
        connected.wait_until_ready(ANSWER_TIMEOUT_S)
        yield connected
    finally:
        connected.close()


@pytest.mark.slow
def test_an_episode_runs_against_a_service_in_the_image(client: ControlClient) -> None:
    spec = episode_spec(
        {"family": "timeout", "trigger": {"on_nth_call": 1}}, episode_id="in-a-container"
    )
    messages = client.open_episode(spec)
    opened = next(messages)
    assert isinstance(opened, Opened)
    with Session(Path(opened.seats[0].directory) / "grpc.sock") as session:
        session.call("get_account", {"id": "ax1"})
        assert isinstance(session.call("get_account", {"id": "ax1"}).result, Value)
    assert client.close_episode("in-a-container", timed_out=False)


def test_the_image_contains_no_gold(container: DockerContainer) -> None:
    code = (
        "import os; print(os.getuid());"
        "print(*(f'{folder}/{file}' for folder, _, files in os.walk('/service') for file in files))"
    )
    user, files = container.exec(["python3", "-c", code]).output.decode().splitlines()
    assert int(user) == SERVICE_UID
    assert "/service/fumehood/core/tools.py" in files
    assert "gold.py" not in files
    assert not re.search(
        r"/fumehood/(scorers|engines|orchestrator)/|/benchmarks/\w+/(tasks|scorer)", files
    )

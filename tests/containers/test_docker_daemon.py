"""Lost answers of the daemon, and a missing daemon."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from docker import APIClient

from fumehood.core.errors import InfraError, InputError
from fumehood.engines.docker import daemon as docker_daemon
from fumehood.engines.docker.engine import DockerEngine
from fumehood.engines.engine import AgentKind, AgentSource, BoxSpec, EngineOptions
from fumehood.engines.ownership import RUN
from fumehood.engines.registry import choose_engine
from tests.containers.docker_proxy import DockerProxy

pytestmark = [pytest.mark.docker, pytest.mark.image]

PATIENCE_MS = 60_000


@pytest.fixture
def proxy(socket_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DockerProxy]:
    with DockerProxy(socket_dir) as road:
        monkeypatch.setenv("DOCKER_HOST", f"unix://{road.address}")
        yield road


def spec_of(engine: DockerEngine, socket_dir: Path, labels: dict[str, str], code: str) -> BoxSpec:
    image = engine.prepare(AgentSource(AgentKind.BUILTIN, "noop"))
    return BoxSpec(
        image=replace(image, command=("python3", "-c", code)), socket_dir=socket_dir, labels=labels
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "question",
    [b"/containers/create?", b"/start HTTP", b"/wait HTTP", b"DELETE ", b"/images/"],
)
def test_a_lost_response_of_the_daemon_changes_nothing(
    proxy: DockerProxy, daemon: APIClient, socket_dir: Path, labels: dict[str, str], question: bytes
) -> None:
    engine = DockerEngine(EngineOptions())
    proxy.lose_next_answer_to(question)
    spec = spec_of(engine, socket_dir, labels, "print('ran')")
    box = engine.start(spec)
    ended = box.wait(PATIENCE_MS)
    output = box.close()
    engine.close()
    assert len(proxy.lost) == 1
    assert ended is not None
    assert (ended.code, output.stdout) == (0, b"ran\n")
    assert daemon.containers(all=True, filters={"label": f"{RUN}={labels[RUN]}"}) == []


@pytest.mark.slow
def test_boxes_share_connections(
    proxy: DockerProxy, socket_dir: Path, labels: dict[str, str]
) -> None:
    engine = DockerEngine(EngineOptions())
    spec = spec_of(engine, socket_dir, labels, "pass")
    before = proxy.connections
    for _ in range(4):
        box = engine.start(spec)
        box.wait(PATIENCE_MS)
        box.close()
    engine.close()
    attached = 4
    assert proxy.connections - before <= attached + 1


def test_a_missing_daemon_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/missing.sock")
    engine = DockerEngine(EngineOptions())
    readiness = engine.check()
    assert not readiness.ready
    assert "apt-get install docker.io" in readiness.detail
    assert "\n" not in readiness.detail
    with pytest.raises(InputError, match="docker is not ready"):
        choose_engine("docker")
    with pytest.raises(InfraError, match="no Docker engine answers"):
        engine.prepare(AgentSource(AgentKind.IMAGE, "any"))


def test_a_daemon_that_the_user_may_not_use_is_reported_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, socket_dir: Path
) -> None:
    path = socket_dir / "docker.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        path.chmod(0)
        user = os.geteuid()
        if user == 0:  # Root may use every socket.
            os.seteuid(65534)
        try:
            readiness = DockerEngine(EngineOptions()).check()
        finally:
            os.seteuid(user)
    assert not readiness.ready
    assert "add the user to the group docker" in readiness.detail
    assert "apt-get install" not in readiness.detail


@pytest.mark.slow
def test_a_stuck_daemon_is_an_error_after_its_deadline(
    monkeypatch: pytest.MonkeyPatch, socket_dir: Path
) -> None:
    monkeypatch.setattr(docker_daemon, "CONNECT_DEADLINE_S", 1)
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(str(socket_dir / "docker.sock"))
        deaf.listen()
        monkeypatch.setenv("DOCKER_HOST", f"unix://{socket_dir}/docker.sock")
        assert not DockerEngine(EngineOptions()).check().ready


def test_a_daemon_on_another_machine_is_rejected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://192.0.2.1:2375")
    readiness = DockerEngine(EngineOptions()).check()
    assert not readiness.ready
    assert "on this machine" in readiness.detail


def test_an_unknown_runtime_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"no runtime 'no-such'.*runc"):
        choose_engine("docker", EngineOptions(runtime="no-such"))


def test_constructing_an_engine_sends_nothing_and_imports_no_client() -> None:
    """Listing engines must be fast, and work without a daemon."""
    code = (
        "import sys; import fumehood.engines.registry; assert 'docker' not in sys.modules;"
        "from fumehood.engines.bubblewrap.engine import BubblewrapEngine;"
        "assert 'docker' not in sys.modules"
    )
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "DOCKER_HOST": "unix:///no"}
    )

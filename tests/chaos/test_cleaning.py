"""Orphans of a killed command are listed and removed; resources of running commands stay."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fumehood.engines.docker.engine import DockerEngine
from fumehood.engines.engine import AgentKind, AgentSource, Orphan, OrphanKind
from fumehood.engines.images import stale
from fumehood.engines.orphans import Machine
from fumehood.engines.ownership import OWNER_START, owner_is_alive, owner_labels
from fumehood.engines.records import MARKER
from tests.chaos.commands import RunningCommand, services_of
from tests.parts.folders import short_folder
from tests.parts.listening import wait_until

SLEEPS = "class Agent:\n    def __init__(self):\n        import time; time.sleep(600)\n"


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningCommand]:
    """A run whose agents sleep, with a separate folder for owner records."""
    (tmp_path / "sleepy.py").write_text(SLEEPS)
    words = ("run", "sample", "-a", "sleepy:Agent", "--engine", "process", "--i-trust-this-agent")
    with (
        short_folder() as records,
        RunningCommand(
            (*words, "--out", str(tmp_path / "run")),
            cwd=tmp_path,
            environment={"XDG_RUNTIME_DIR": records, "XDG_STATE_HOME": records},
        ) as started,
    ):
        monkeypatch.setenv("XDG_RUNTIME_DIR", records)
        monkeypatch.setenv("XDG_STATE_HOME", records)
        assert wait_until(lambda: len(started.descendants()) >= 2), started.output()
        yield started


def clean(*words: str) -> list[dict[str, object]]:
    command = [sys.executable, "-m", "fumehood", "clean", "--json", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    orphans: list[dict[str, object]] = json.loads(done.stdout)["orphans"]
    # Other users of this machine may leave containers at any time.
    return [orphan for orphan in orphans if orphan["kind"] != "container"]


@pytest.mark.slow
def test_resources_of_a_running_command_stay(command: RunningCommand) -> None:
    assert clean() == []
    assert command.is_running


@pytest.mark.slow
def test_a_killed_run_whose_service_hangs_is_cleaned_up(command: RunningCommand) -> None:
    state = Path(os.environ["XDG_RUNTIME_DIR"], "fumehood")
    # The service starts before the folder of the calls is made.
    assert wait_until(lambda: len([*state.glob(f"*/{MARKER}")]) == 3)
    (service,) = services_of(command)
    # A stopped service cannot notice that its owner is gone.
    service.kill(signal.SIGSTOP)
    try:
        command.kill()
        found = clean("--dry-run")
        assert {orphan["kind"] for orphan in found} == {"processes", "folder"}
        folders = [Path(str(orphan["name"])) for orphan in found if orphan["kind"] == "folder"]
        assert len(folders) == 3, "sockets, files of calls, and temporary files of the service"
        assert all(folder.is_dir() for folder in folders)
        assert service.is_alive
        removed = clean()
        assert all(orphan["removed"] for orphan in removed)
        assert not any(folder.exists() for folder in folders)
        assert wait_until(lambda: not service.is_alive)
        assert clean() == []
    finally:
        service.kill()


@pytest.mark.slow
def test_doctor_lists_orphans_and_fails(command: RunningCommand) -> None:
    words = [sys.executable, "-m", "fumehood", "doctor", "--orphans"]
    # Other users of this machine may leave containers at any time.
    no_docker = os.environ | {"DOCKER_HOST": "unix:///nonexistent/docker.sock"}

    def doctor() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, capture_output=True, text=True, timeout=60, check=False, env=no_docker
        )

    nothing = doctor()
    assert (nothing.returncode, nothing.stdout) == (0, "0 to remove\n")
    command.kill()
    found = doctor()
    assert found.returncode == 1
    assert "folder " in found.stdout
    assert clean() != []
    assert doctor().returncode == 0


@pytest.mark.slow
def test_the_next_run_removes_orphans(command: RunningCommand, tmp_path: Path) -> None:
    command.kill()
    words = (
        "run",
        "sample",
        "-a",
        "noop",
        "--engine",
        "inline",
        "--out",
        str(tmp_path / "next"),
        "-j",
        "4",
    )
    subprocess.run(
        [sys.executable, "-m", "fumehood", *words], capture_output=True, timeout=120, check=True
    )
    assert clean("--dry-run") == []


@pytest.mark.docker
@pytest.mark.image
def test_a_container_is_an_orphan_when_its_owner_has_ended() -> None:
    from contextlib import closing

    from docker import APIClient

    with closing(APIClient(version="auto")) as daemon, Machine(owner_is_alive) as machine:
        names = {}
        for state, labels in (
            ("ended", {**owner_labels("r"), OWNER_START: "1"}),
            ("running", owner_labels("r")),
        ):
            made = daemon.create_container("fumehood/agent-python:latest", "true", labels=labels)
            names[state] = made["Id"]
        try:
            found = [orphan.name for orphan in machine.orphans(images=False)]
            assert names["ended"] in found
            assert names["running"] not in found
            machine.remove([Orphan(OrphanKind.CONTAINER, names["ended"], "r")])
            left = [container["Id"] for container in daemon.containers(all=True)]
            assert names["ended"] not in left
            assert names["running"] in left
        finally:
            daemon.remove_container(names["running"], force=True)


@pytest.mark.slow
@pytest.mark.docker
@pytest.mark.image
def test_an_image_of_a_changed_folder_is_an_orphan_of_its_builder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = tmp_path / "agent"
    agent.mkdir()
    (agent / "Dockerfile").write_text(
        f"FROM fumehood/agent-python\nENV SEED={os.urandom(4).hex()}\n"
    )
    engine = DockerEngine()
    with Machine(owner_is_alive) as machine:
        image = engine.prepare(AgentSource(AgentKind.FOLDER, str(agent)))
        engine.close()
        orphan = Orphan(OrphanKind.IMAGE, image.reference, "")
        try:
            assert orphan not in machine.orphans(images=True)
            (agent / "more").touch()
            assert orphan in machine.orphans(images=True)
            with monkeypatch.context() as elsewhere:
                elsewhere.setattr(stale, "builder", lambda: "/another/checkout")
                assert orphan not in machine.orphans(images=True)
        finally:
            assert machine.remove([orphan]) == []
        assert orphan not in machine.orphans(images=True)

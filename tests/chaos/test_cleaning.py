"""What a killed command leaves on the machine is named and removed; what belongs to the living stays."""

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
from fumehood.engines.orphans import Machine
from fumehood.engines.ownership import OWNER_START, owner_is_alive, owner_labels
from tests.chaos.victims import Victim, services_of
from tests.parts.listening import wait_until

SLEEPS = "class Agent:\n    def __init__(self):\n        import time; time.sleep(600)\n"


@pytest.fixture
def victim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Victim]:
    """A run whose agents sleep, on a machine on which nobody else keeps notes."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "notes"))
    (tmp_path / "sleepy.py").write_text(SLEEPS)
    words = ("run", "sample", "-a", "sleepy:Agent", "--engine", "process", "--i-trust-this-agent")
    with Victim((*words, "--out", str(tmp_path / "run")), cwd=tmp_path) as started:
        assert wait_until(lambda: len(started.family()) >= 2), started.said()
        yield started


def clean(*words: str) -> list[dict[str, object]]:
    command = [sys.executable, "-m", "fumehood", "clean", "--json", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    found: list[dict[str, object]] = json.loads(done.stdout)["orphans"]
    # Whoever else uses this machine may have lost a container just now.
    return [one for one in found if one["kind"] != "container"]


def test_what_belongs_to_a_living_run_is_left_alone(victim: Victim) -> None:
    assert clean() == []
    assert victim.is_running


def test_a_killed_run_whose_service_hangs_is_cleaned_up(victim: Victim) -> None:
    (service,) = services_of(victim)
    # One that cannot see that its owner is gone.
    service.kill(signal.SIGSTOP)
    try:
        victim.kill()
        found = clean("--dry-run")
        assert {one["kind"] for one in found} == {"processes", "folder"}
        folders = [Path(str(one["name"])) for one in found if one["kind"] == "folder"]
        assert len(folders) == 2
        assert all(folder.is_dir() for folder in folders)
        assert service.is_alive
        removed = clean()
        assert all(one["removed"] for one in removed)
        assert not any(folder.exists() for folder in folders)
        assert wait_until(lambda: not service.is_alive)
        assert clean() == []
    finally:
        service.kill()


def test_the_next_run_cleans_up_by_itself(victim: Victim, tmp_path: Path) -> None:
    victim.kill()
    words = (
        "run",
        "sample",
        "-a",
        "noop",
        "--engine",
        "process",
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
def test_a_container_of_the_dead_is_listed_and_one_of_the_living_is_not() -> None:
    from contextlib import closing

    from docker import APIClient

    with closing(APIClient(version="auto")) as daemon, Machine(owner_is_alive) as machine:
        names = {}
        for state, labels in (
            ("dead", {**owner_labels("r"), OWNER_START: "1"}),
            ("living", owner_labels("r")),
        ):
            made = daemon.create_container("fumehood/agent-python:latest", "true", labels=labels)
            names[state] = made["Id"]
        try:
            found = [one.name for one in machine.orphans(images=False)]
            assert names["dead"] in found
            assert names["living"] not in found
            machine.remove([Orphan(OrphanKind.CONTAINER, names["dead"], "r")])
            left = [one["Id"] for one in daemon.containers(all=True)]
            assert names["dead"] not in left
            assert names["living"] in left
        finally:
            daemon.remove_container(names["living"], force=True)


@pytest.mark.docker
@pytest.mark.image
def test_an_image_of_a_folder_that_has_changed_is_old(tmp_path: Path) -> None:
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
        finally:
            assert machine.remove([orphan]) == []
        assert orphan not in machine.orphans(images=True)

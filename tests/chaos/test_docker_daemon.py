"""A Docker daemon that cannot be reached, or does not answer for some time, loses no episode."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chaos.commands import RunningCommand
from tests.chaos.private_docker import PrivateDocker
from tests.chaos.workspace import Workspace, damage_of, infra_rows_of, results_of, workspace
from tests.containers.docker_proxy import DockerProxy
from tests.parts.listening import wait_until

pytestmark = [pytest.mark.docker, pytest.mark.image, pytest.mark.slow]

INFRA = 3


def _words(space: Workspace, tasks: int) -> tuple[str, ...]:
    return (
        "run",
        str(space.suite("s", tasks)),
        "-a",
        "policy_aware",
        "--engine",
        "docker",
        "-j",
        "2",
        "--out",
    )


def _through(proxy: DockerProxy) -> dict[str, str]:
    return {"DOCKER_HOST": f"unix://{proxy.address}"}


def containers_of(run: Path) -> str:
    """Return the containers of a run that still exist."""
    label = f"label=fumehood.run={json.loads((run / 'run.json').read_text())['run']}"
    command = ["docker", "ps", "-aq", "--filter", label]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def _has_begun(run: Path, command: RunningCommand) -> bool:
    return not command.is_running or (run / "episodes.jsonl").exists()


@pytest.mark.release
def test_a_daemon_that_goes_away_ends_the_run_and_resume_completes_it() -> None:
    with workspace() as space:
        words, quiet, cut = _words(space, 10), space.root / "quiet", space.root / "cut"
        space.finish(*words, str(quiet))
        with DockerProxy(space.root) as proxy:
            with space.start(*words, str(cut), environment=_through(proxy)) as command:
                assert wait_until(lambda: _has_begun(cut, command))
                proxy.refuse()
                assert command.wait(120) == INFRA, command.output()
            proxy.accept_again()
            space.finish("resume", str(cut), environment=_through(proxy))
        assert {row["end"]["kind"] for row in infra_rows_of(cut)} <= {"engine"}
        assert results_of(cut) == results_of(quiet)
        assert damage_of(cut) == []
        assert space.orphans() == []
        assert containers_of(cut) == ""


def test_a_run_waits_for_a_daemon_that_hangs() -> None:
    with workspace() as space:
        words, quiet, slow = _words(space, 6), space.root / "quiet", space.root / "slow"
        space.finish(*words, str(quiet))
        with (
            DockerProxy(space.root) as proxy,
            space.start(*words, str(slow), environment=_through(proxy)) as command,
        ):
            assert wait_until(lambda: _has_begun(slow, command))
            with proxy.hanging():
                time.sleep(3)
                assert command.is_running
            assert command.wait(120) == 0, command.output()
        assert results_of(slow) == results_of(quiet)
        assert damage_of(slow) == []
        assert space.orphans() == []
        assert containers_of(slow) == ""


def kill_dockerd(docker: PrivateDocker) -> None:
    docker.kill(docker.daemon)
    docker.wait_until_dead()


def stop_dockerd(docker: PrivateDocker) -> None:
    docker.kill(docker.daemon, signal.SIGSTOP)
    time.sleep(3)
    docker.kill(docker.daemon, signal.SIGCONT)


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("dockerd") is None, reason="needs root and dockerd"
)
@pytest.mark.parametrize(
    "breakage", [kill_dockerd, pytest.param(stop_dockerd, marks=pytest.mark.release)]
)
def test_a_killed_or_stopped_daemon_costs_no_episode(
    breakage: Callable[[PrivateDocker], None],
) -> None:
    with workspace() as space, PrivateDocker(space.root / "docker") as docker:
        words, quiet, cut = _words(space, 5), space.root / "quiet", space.root / "cut"
        space.finish(*words, str(quiet))
        image = json.loads((quiet / "run.json").read_text())["agents"][0]["image"]
        docker.copy_image(image)
        with space.start(*words, str(cut), environment=docker.environment) as command:
            assert wait_until(lambda: _has_begun(cut, command), 60)
            breakage(docker)
            assert command.wait(300) in (0, INFRA), command.output()
            assert "Traceback" not in command.output()
        docker.recover(image)
        space.finish("resume", str(cut), environment=docker.environment)
        assert {row["end"]["kind"] for row in infra_rows_of(cut)} <= {"engine"}
        assert results_of(cut) == results_of(quiet)
        assert damage_of(cut) == []
        assert space.orphans() == []
        orphans = space.finish("doctor", "--orphans", environment=docker.environment)
        assert "0 to remove" in orphans
        assert docker.containers() == []

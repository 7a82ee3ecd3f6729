"""A Docker daemon that cannot be reached, or does not answer for a while, costs time and no episode."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from tests.chaos.arena import Arena, arena, damage_of, infra_rows_of, story_of
from tests.chaos.victims import Victim
from tests.containers.docker_proxy import DockerProxy
from tests.parts.listening import wait_until

pytestmark = [pytest.mark.docker, pytest.mark.image]

INFRA = 3


def _words(corner: Arena, tasks: int) -> tuple[str, ...]:
    return (
        "run",
        str(corner.suite("s", tasks)),
        "-a",
        "policy_aware",
        "--engine",
        "docker",
        "-j",
        "2",
        "--out",
    )


def _by_way_of(proxy: DockerProxy) -> dict[str, str]:
    return {"DOCKER_HOST": f"unix://{proxy.address}"}


def containers_of(run: Path) -> str:
    """Return the containers of a run that are still there."""
    label = f"label=fumehood.run={json.loads((run / 'run.json').read_text())['run']}"
    asked = ["docker", "ps", "-aq", "--filter", label]
    return subprocess.run(asked, capture_output=True, text=True, timeout=60, check=True).stdout


def _has_begun(run: Path, victim: Victim) -> bool:
    return not victim.is_running or (run / "episodes.jsonl").exists()


def test_a_daemon_that_goes_away_ends_the_run_and_resuming_makes_it_good() -> None:
    with arena() as corner:
        words, quiet, cut = _words(corner, 10), corner.root / "quiet", corner.root / "cut"
        corner.finish(*words, str(quiet))
        with DockerProxy(corner.root) as proxy:
            with corner.start(*words, str(cut), environment=_by_way_of(proxy)) as victim:
                assert wait_until(lambda: _has_begun(cut, victim))
                proxy.refuse()
                assert victim.wait(120) == INFRA, victim.said()
            proxy.accept_again()
            corner.finish("resume", str(cut), environment=_by_way_of(proxy))
        assert {row["end"]["kind"] for row in infra_rows_of(cut)} <= {"engine"}
        assert story_of(cut) == story_of(quiet)
        assert damage_of(cut) == []
        assert corner.leftovers() == []
        assert containers_of(cut) == ""


def test_a_daemon_that_hangs_for_a_while_is_waited_for() -> None:
    with arena() as corner:
        words, quiet, slow = _words(corner, 6), corner.root / "quiet", corner.root / "slow"
        corner.finish(*words, str(quiet))
        with (
            DockerProxy(corner.root) as proxy,
            corner.start(*words, str(slow), environment=_by_way_of(proxy)) as victim,
        ):
            assert wait_until(lambda: _has_begun(slow, victim))
            with proxy.hanging():
                time.sleep(3)
                assert victim.is_running
            assert victim.wait(120) == 0, victim.said()
        assert story_of(slow) == story_of(quiet)
        assert damage_of(slow) == []
        assert corner.leftovers() == []
        assert containers_of(slow) == ""

"""No two boxes have the same user, and a killed owner loses its reservation."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from fumehood.core.errors import InfraError
from fumehood.core.user_ids import BOX_UIDS
from fumehood.engines.box_users import BoxUsers
from fumehood.engines.bubblewrap.cgroups import BoxGroup, hierarchies, remove_group
from fumehood.engines.engine import Limits
from fumehood.engines.ownership import OWNER_START, owner_is_alive, owner_labels

OWN = owner_labels("r")
OF_A_DEAD_PROCESS = {**OWN, OWNER_START: "1"}
FEW = range(BOX_UIDS.start, BOX_UIDS.start + 60)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "users").mkdir(mode=0o700)
    return tmp_path / "users"


def reserve_many(folder: Path, count: int) -> list[int]:
    with ThreadPoolExecutor(4) as threads:
        reserve = BoxUsers(folder, FEW).reserve
        return list(threads.map(lambda _: reserve(OWN), range(count)))


def test_two_runs_at_once_never_share_a_user(folder: Path) -> None:
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:
        runs = [processes.submit(reserve_many, folder, 20) for _ in range(2)]
        users = [user for run in runs for user in run.result()]
    assert len(users) == len(set(users)) == 40
    assert set(users) <= set(FEW)


def test_a_released_user_can_be_reserved_again(folder: Path) -> None:
    users = BoxUsers(folder, BOX_UIDS[:1])
    assert users.reserve(OWN) == BOX_UIDS.start
    with pytest.raises(InfraError, match="fumehood clean"):
        users.reserve(OWN)
    users.release(BOX_UIDS.start)
    assert users.reserve(OWN) == BOX_UIDS.start


def test_only_users_without_an_owner_are_released(folder: Path) -> None:
    users = BoxUsers(folder)
    kept, lost = users.reserve(OWN), users.reserve(OF_A_DEAD_PROCESS)
    assert users.reap(owner_is_alive) == 1
    assert [record.stem for record in folder.glob("*.json")] == [str(kept)]
    assert kept != lost


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")
def test_a_user_whose_processes_still_run_stays_reserved(folder: Path) -> None:
    users = BoxUsers(folder)
    user = users.reserve(OF_A_DEAD_PROCESS)
    sleeping = subprocess.Popen(["sleep", "600"], user=user, group=user, extra_groups=[])
    try:
        assert users.reap(owner_is_alive) == 0
    finally:
        sleeping.kill()
        sleeping.wait()
    assert users.reap(owner_is_alive) == 1


@pytest.mark.skipif(
    os.geteuid() != 0 or hierarchies() is None, reason="needs root and control groups"
)
def test_processes_in_the_group_of_a_lost_user_are_killed(folder: Path) -> None:
    # The end of the range, so that no box of another process is affected.
    users = BoxUsers(folder, BOX_UIDS[-5:-4])
    user = users.reserve(OF_A_DEAD_PROCESS)
    found = hierarchies()
    assert found is not None
    group = BoxGroup(found, user)
    group.make(Limits())
    with subprocess.Popen(["sleep", "600"], user=user, group=user, extra_groups=[]) as left:
        try:
            group.add(left.pid)
            # An ended process has its user until its parent waits for it.
            users.reap(owner_is_alive, remove_group)
            assert left.wait(60) == -signal.SIGKILL
        finally:
            left.kill()
    users.reap(owner_is_alive, remove_group)
    assert users.reserved() == frozenset()


def test_a_killed_owner_loses_its_users(folder: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; "
        "from fumehood.engines.box_users import BoxUsers; "
        "from fumehood.engines.ownership import owner_labels; "
        "print(BoxUsers(Path(sys.argv[1])).reserve(owner_labels('r')), flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", code, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert int(owner.stdout.readline()) in BOX_UIDS
        assert BoxUsers(folder).reap(owner_is_alive) == 0
        owner.kill()
        owner.wait()
    assert BoxUsers(folder).reap(owner_is_alive) == 1

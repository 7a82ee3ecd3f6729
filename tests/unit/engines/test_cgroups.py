"""Control groups of versions 1 and 2: plain folders in place of the kernel, and real ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fumehood.core.user_ids import BOX_UIDS
from fumehood.engines.bubblewrap import cgroups
from fumehood.engines.bubblewrap.cgroups import (
    DISK_BYTES_PER_S,
    HELPERS,
    BoxGroup,
    Hierarchies,
    find_delegated,
    find_hierarchies,
    hierarchies,
    remove_group,
    remove_unnamed_groups,
    takes_limits,
)
from fumehood.engines.engine import Limits, NotEnded
from fumehood.engines.subprocess_box import ChildBox

FREEZER = Path("/sys/fs/cgroup/freezer")
LIMITS = Limits(memory_bytes=64 << 20, cpus=0.5, processes=20)
VERSION_1 = """
tmpfs /sys/fs/cgroup tmpfs ro 0 0
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0
cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0
cgroup /sys/fs/cgroup/pids cgroup rw,pids 0 0
""".strip()


def test_the_controllers_of_version_1_are_found() -> None:
    found = find_hierarchies(VERSION_1)
    assert found is not None
    assert found.tops["memory"] == Path("/sys/fs/cgroup/memory")
    assert found.tops["cpu"] == found.tops["cpuacct"]
    assert not found.is_unified


def test_a_missing_controller_means_no_groups() -> None:
    assert find_hierarchies(VERSION_1.replace("rw,pids", "rw,freezer")) is None


def test_version_2_is_used_if_it_has_the_controllers(tmp_path: Path) -> None:
    line = f"cgroup2 {tmp_path} cgroup2 rw 0 0"
    (tmp_path / "cgroup.controllers").write_text("hugetlb")
    assert find_hierarchies(line) is None
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory pids")
    found = find_hierarchies(line)
    assert found is not None
    assert found.is_unified


def test_version_2_gets_the_limits_and_enables_the_controllers(tmp_path: Path) -> None:
    BoxGroup(Hierarchies({"": tmp_path}), 7).make(LIMITS)
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+memory +cpu +pids"
    written = {file.name: file.read_text() for file in (tmp_path / "fumehood-7").iterdir()}
    assert written == {
        "memory.max": str(64 << 20),
        "cpu.max": "50000 100000",
        "cpu.weight": "25",
        "pids.max": str(20 + HELPERS),
    }


@pytest.mark.skipif(hierarchies() is None, reason="this user may make no control groups")
def test_a_group_of_a_killed_run_is_removed_with_its_processes() -> None:
    found = hierarchies()
    assert found is not None
    user = BOX_UIDS.stop - 1
    group = BoxGroup(found, user)
    group.make(LIMITS)
    with subprocess.Popen(["sleep", "600"]) as sleeping:
        group.add(sleeping.pid)
        assert f"/fumehood-{user}" in Path(f"/proc/{sleeping.pid}/cgroup").read_text()
        assert remove_group(user)
        assert sleeping.wait() == -9
    assert remove_group(user)


@pytest.mark.skipif(hierarchies() is None, reason="this user may make no control groups")
def test_only_empty_groups_without_a_reserved_user_are_removed() -> None:
    found = hierarchies()
    assert found is not None
    # The end of the range, so that no box of another process is affected.
    kept, lost = BOX_UIDS.stop - 2, BOX_UIDS.stop - 3
    for user in (kept, lost):
        BoxGroup(found, user).make(LIMITS)
    top = found.tops.get("pids") or found.tops[""]
    remove_unnamed_groups(lambda: set(BOX_UIDS) - {lost})
    left = {folder.name for folder in top.glob("fumehood-*")}
    assert f"fumehood-{lost}" not in left
    assert f"fumehood-{kept}" in left
    assert remove_group(kept)


@pytest.fixture
def delegated(tmp_path: Path) -> Path:
    group = tmp_path / "user.slice/run.scope"
    group.mkdir(parents=True)
    for file in ("cgroup.procs", "cgroup.subtree_control"):
        (group / file).touch()
    (group / "cgroup.controllers").write_text("cpu memory pids")
    return group


@pytest.mark.parametrize("below", ["", "/fumehood-host"])
def test_an_ordinary_user_makes_groups_in_a_delegated_one(
    below: str, delegated: Path, tmp_path: Path
) -> None:
    mounts = f"cgroup2 {tmp_path} cgroup2 rw 0 0"
    found = find_delegated(mounts, f"0::/user.slice/run.scope{below}\n")
    assert found == Hierarchies({"": delegated})


@pytest.mark.parametrize("controllers", ["memory pids", ""])
def test_a_delegated_group_needs_every_controller(
    controllers: str, delegated: Path, tmp_path: Path
) -> None:
    (delegated / "cgroup.controllers").write_text(controllers)
    mounts = f"cgroup2 {tmp_path} cgroup2 rw 0 0"
    assert find_delegated(mounts, "0::/user.slice/run.scope\n") is None


def test_a_delegated_group_whose_children_cannot_be_limited_is_not_used(delegated: Path) -> None:
    assert takes_limits(Hierarchies({"": delegated}))
    control = delegated / "cgroup.subtree_control"
    control.unlink()
    control.mkdir()  # A kernel that refuses to write.
    assert not takes_limits(Hierarchies({"": delegated}))


def test_an_ordinary_user_makes_no_groups_in_version_1() -> None:
    assert find_delegated(VERSION_1, "4:memory:/\n0::/\n") is None


def test_reading_from_disks_is_limited() -> None:
    existing = hierarchies()
    if existing is None or "blkio" not in existing.tops:
        pytest.skip("needs root and the controller blkio of version 1")
    disks = [disk for disk in Path("/sys/block").iterdir() if (disk / "device").exists()]
    if not disks:
        pytest.skip("this machine has no disks")
    user = BOX_UIDS.start + os.getpid() % 1000
    group = BoxGroup(existing, user)
    group.make(LIMITS)
    try:
        file = existing.tops["blkio"] / f"fumehood-{user}" / "blkio.throttle.read_bps_device"
        numbers = {(disk / "dev").read_text().strip() for disk in disks}
        assert set(file.read_text().split()) == {*numbers, str(DISK_BYTES_PER_S)}
    finally:
        assert group.remove()


THREADS_THAT_REPLACE_THEIR_PROGRAM = """
import os, sys, threading
for _ in range(20):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
os.execv(sys.executable, [sys.executable, "-S", "-c", os.environ["PROGRAM"]])
"""


@pytest.mark.slow
@pytest.mark.skipif(hierarchies() is None, reason="this user may make no control groups")
def test_a_program_that_replaces_itself_can_be_paused() -> None:
    found = hierarchies()
    assert found is not None
    group = BoxGroup(found, BOX_UIDS.stop - 4, can_pause=True)
    group.make(LIMITS)
    program = THREADS_THAT_REPLACE_THEIR_PROGRAM
    command = [sys.executable, "-S", "-c", program]
    with subprocess.Popen(command, env={"PROGRAM": program}) as replacing:
        try:
            group.add(replacing.pid)
            for _ in range(200):
                group.pause()
                group.resume()
            assert replacing.poll() is None
        finally:
            assert group.remove()


@pytest.mark.parametrize("mounts", [None, b"none /m\xfcnt tmpfs rw 0 0\n"])
def test_a_system_without_control_groups_limits_no_boxes(
    mounts: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "_MOUNTS", tmp_path / "mounts")
    monkeypatch.setattr(cgroups, "_OWN_GROUPS", tmp_path / "missing")
    if mounts is not None:
        (tmp_path / "mounts").write_bytes(mounts)
    assert hierarchies.__wrapped__() is None


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0 or not FREEZER.is_dir(), reason="needs control groups v1")
def test_a_killed_process_that_does_not_end_fails_no_attempt() -> None:
    """The kernel can need minutes to end a killed process; a frozen one does not end either."""
    program = subprocess.Popen(["sleep", "600"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    folder = FREEZER / f"fumehood-test-{program.pid}"
    folder.mkdir()
    released: list[str] = []

    def release() -> None:
        released.append("all but the user")
        raise NotEnded("a process of a box does not end")

    try:
        (folder / "cgroup.procs").write_text(str(program.pid))
        (folder / "freezer.state").write_text("FROZEN")
        box = ChildBox(program, 100, on_close=release)
        assert box.wait(1) is None
        assert box.close().stdout == b""
        assert program.poll() is None, "the control"
        assert released == ["all but the user"]
    finally:
        (folder / "freezer.state").write_text("THAWED")
        program.kill()
        program.wait()
        folder.rmdir()

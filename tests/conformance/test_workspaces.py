"""Workspaces, on every engine that starts them."""

from __future__ import annotations

import io
import os
import re
import resource
import secrets
import shutil
import signal
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event

import pytest

from fumehood.core.errors import InfraError, InputError
from fumehood.core.user_ids import BOX_UIDS, EPISODE_UIDS
from fumehood.engines.docker import daemon as docker_daemon
from fumehood.engines.docker import written
from fumehood.engines.docker.daemon import Daemon
from fumehood.engines.docker.engine import DockerEngine
from fumehood.engines.engine import (
    INODE_BYTES,
    BoxSpec,
    EngineOptions,
    Exit,
    ExitReason,
    Image,
    Isolation,
    Limits,
    LiveWorkspaceBox,
    NotBegun,
    Orphan,
    OrphanKind,
    TooLarge,
    Workspace,
    WorkspaceBox,
    WorkspaceEngine,
)
from fumehood.engines.images.agent_shell import NAME, build_agent_shell
from fumehood.engines.oci import containers
from fumehood.engines.ownership import RUN, owner_labels
from fumehood.engines.records import FolderRecords
from fumehood.engines.registry import choose_engine
from fumehood.orchestrator.workspaces import disk_watch
from tests.conformance.boxes import PATIENCE_MS

DOCKERFILE = f"""
FROM {NAME}:latest
USER 0
ENV GREETING=hello
WORKDIR /app
COPY app /app
"""
FILES = ("kept/one", "gone/two", "replaced/three", "replaced/four", "renamed/five", "to_link/six")
CHANGES = """
echo changed > kept/one; echo new > kept/new; rm -r gone seven
rm -r replaced; mkdir replaced; echo other > replaced/three
mv renamed moved; rm -r to_link; ln -s /etc to_link
"""
LIMITS = Limits(memory_bytes=256 << 20, processes=64, file_bytes=1 << 30, tmp_bytes=1 << 30)
BYTES_MAX = 1 << 20
Started = tuple[WorkspaceEngine, Image, Isolation]
PARAMETERS = [
    pytest.param(("docker", None), id="docker", marks=pytest.mark.docker),
    pytest.param(("docker", "runsc"), id="docker-runsc", marks=pytest.mark.runsc),
    pytest.param(("oci", None), id="oci", marks=pytest.mark.oci),
    pytest.param(("oci", "runc"), id="oci-runc", marks=pytest.mark.runc),
    pytest.param(("oci", "runsc"), id="oci-runsc", marks=[pytest.mark.oci, pytest.mark.runsc]),
]
OF_DAEMON = PARAMETERS[:1]
"""Other engines kill processes without a daemon, and gVisor starts programs itself."""
pytestmark = pytest.mark.image


@dataclass
class Workspaces:
    """Starts workspaces that run scripts, and closes them at the end."""

    engine: WorkspaceEngine
    image: Image
    isolation: Isolation
    socket_dir: Path
    labels: dict[str, str]
    cleaning: ExitStack

    def start(
        self,
        script: str,
        *,
        archive: bytes = b"",
        limits: Limits = LIMITS,
        folder: str = "",
        terminals: bool = False,
    ) -> WorkspaceBox:
        image = replace(self.image, command=("/bin/sh", "-c", script))
        box = self.engine.start(
            BoxSpec(
                image=replace(image, working_dir=folder or image.working_dir),
                socket_dir=self.socket_dir,
                limits=limits,
                labels=self.labels,
                workspace=Workspace(archive=archive, terminals=terminals),
            )
        )
        self.cleaning.callback(box.close)
        return box

    def live(self, script: str) -> LiveWorkspaceBox:
        box = self.start(script)
        assert isinstance(box, LiveWorkspaceBox)
        return box

    def ended(self, script: str, *, archive: bytes = b"", limits: Limits = LIMITS) -> WorkspaceBox:
        box = self.start(script, archive=archive, limits=limits)
        assert box.wait(PATIENCE_MS) is not None
        return box

    def says(self, script: str, *, archive: bytes = b"") -> str:
        box = self.ended(script, archive=archive)
        output = box.close()
        assert box.wait(0) == Exit(0, ExitReason.EXITED), output.stderr
        return output.stdout.decode().strip()


@pytest.fixture(params=PARAMETERS, scope="module")
def engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Started]:
    name, runtime = request.param
    with closing(Daemon()) as daemon:
        build_agent_shell(lambda line: None, daemon)
    folder = tmp_path_factory.mktemp("an environment")
    (folder / "Dockerfile").write_text(DOCKERFILE, "utf-8")
    for file in (*FILES, "seven"):
        (folder / "app" / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / "app" / file).write_text("first\n", "utf-8")
    (folder / "app" / "link").symlink_to("/app/kept")
    with closing(choose_engine(name, EngineOptions(runtime=runtime)).engine) as chosen:
        assert isinstance(chosen, WorkspaceEngine)
        yield chosen, chosen.prepare_workspace(folder).image, chosen.isolation


@pytest.fixture
def workspaces(engine: Started, socket_dir: Path) -> Iterator[Workspaces]:
    with ExitStack() as cleaning:
        yield Workspaces(*engine, socket_dir, owner_labels(secrets.token_hex(4)), cleaning)


def packed(**files: str) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name.replace("__", "/"))
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return content.getvalue()


def entries(archive: bytes | None) -> dict[str, tarfile.TarInfo]:
    assert archive is not None
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        return {os.path.normpath(entry.name): entry for entry in files}


def content(archive: bytes | None) -> bytes:
    assert archive is not None
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        file = files.extractfile(files.getmembers()[0])
        assert file is not None
        return file.read()


def eventually(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.slow
def test_a_workspace_that_is_killed_twice_was_not_killed_from_outside(
    workspaces: Workspaces,
) -> None:
    box = workspaces.start("exec sleep 600")
    box.kill()
    assert box.copy_out("/app/kept", BYTES_MAX)
    box.kill()
    ended = box.wait(PATIENCE_MS)
    assert ended is not None
    assert ended.reason is ExitReason.KILLED


@pytest.mark.slow
def test_programs_are_root_in_the_environment_of_the_image(workspaces: Workspaces) -> None:
    said = workspaces.says(
        "id -u; pwd; echo $HOME $GREETING $HOSTNAME\n"
        "for place in / /usr /etc; do touch $place/new; done; echo /n*"
    )
    assert said.splitlines() == ["0", "/app", "/ hello localhost", "/new"]


def test_programs_have_the_capabilities_of_a_workspace_and_no_network(
    workspaces: Workspaces,
) -> None:
    names = "NoNewPrivs|CapEff|CapBnd|CapPrm|CapInh|CapAmb|Seccomp"
    said = workspaces.says(f"grep -E '^({names}):' /proc/self/status; grep -c : /proc/net/dev")
    *status, devices = said.splitlines()
    values = dict(re.split(r":\s*", line) for line in status)
    # CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID and SETUID; see linux/capability.h.
    assert {int(values[f"Cap{kind}"], 16) for kind in ("Eff", "Prm", "Bnd")} == {0xFB}
    assert int(values["CapInh"], 16) == 0 == int(values.get("CapAmb", "0"), 16)
    assert devices == "1"
    if "NoNewPrivs" in values:  # Not in gVisor.
        assert (values["NoNewPrivs"], values["Seccomp"]) == ("1", "2")


TAKE_USERS = """
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **users) {
    for (int at = 1; at < count; at++) {
        uid_t user = strtoul(users[at], 0, 10), all = -1;
        int taken = !setreuid(user, 0) + !setresuid(user, all, 0);
        printf("%d ", taken);
        setresuid(0, 0, 0);
    }
}
"""
"""Prints for each user how many of two system calls take it."""


def test_programs_cannot_take_the_users_of_episodes_and_boxes(
    workspaces: Workspaces, tmp_path: Path
) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    command = ["gcc", "-static", "-w", "-x", "c", "-", "-o", str(tmp_path / "take")]
    subprocess.run(command, input=TAKE_USERS, text=True, check=True)
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        archive.add(tmp_path / "take", "app/take")
    users = (1000, 65534, EPISODE_UIDS[0], BOX_UIDS[-1])
    script = f"/app/take {' '.join(map(str, users))}"
    taken = workspaces.says(script, archive=content.getvalue()).split()
    # A separate kernel knows the users only as numbers.
    own_kernel = workspaces.isolation is Isolation.SANDBOXED_KERNEL
    assert taken == (["2"] * 4 if own_kernel else ["2", "2", "0", "0"])


@pytest.mark.parametrize("terminals", [False, True])
def test_programs_open_terminals_of_the_kernel_of_the_host_only_if_the_task_needs_them(
    workspaces: Workspaces, terminals: bool
) -> None:
    box = workspaces.start("(exec 3<>/dev/ptmx) && echo opened", terminals=terminals)
    ended = box.wait(PATIENCE_MS)
    opens = terminals or workspaces.isolation is Isolation.SANDBOXED_KERNEL
    assert box.close().stdout.decode().strip() == ("opened" if opens else "")
    assert ended is not None
    assert (ended.code == 0) == opens


def test_all_files_have_the_device_of_their_folder(workspaces: Workspaces) -> None:
    if workspaces.isolation is Isolation.SANDBOXED_KERNEL:
        pytest.skip("stat of Debian 12 does not work in older gVisor")
    said = workspaces.says("echo > new; echo > seven; stat -c %d / . new seven kept/one | uniq")
    assert said.isdecimal()


def test_a_working_folder_of_the_host_is_refused_and_links_of_the_image_are_resolved(
    engine: Started, tmp_path: Path
) -> None:
    (tmp_path / "app").mkdir()
    links = {"descriptors": "/proc/self/fd", "other": "/srv", "eight": "/proc/self/fd/8"}
    for name, target in links.items():
        (tmp_path / "app" / name).symlink_to(target)
    (tmp_path / "Dockerfile").write_text(DOCKERFILE, "utf-8")

    def place(setting: str) -> str:
        return engine[0].prepare_workspace(tmp_path, (), setting).image.working_dir

    for setting in ("/proc/self/fd/8", "/app/descriptors/8", "/app/eight", "/dev"):
        with pytest.raises(InputError, match=f"WORKDIR '{setting}' leads to /"):
            place(setting)
    assert (place(""), place("/app/other/new")) == ("/app", "/srv/new")


def test_a_missing_working_folder_is_made(workspaces: Workspaces) -> None:
    box = workspaces.start("pwd", folder="/made/here")
    assert box.wait(PATIENCE_MS) == Exit(0, ExitReason.EXITED)
    assert box.close().stdout == b"/made/here\n"


@pytest.mark.slow
def test_the_engine_reports_what_was_changed_and_deleted(workspaces: Workspaces) -> None:
    box = workspaces.ended(CHANGES)
    changed = {path for path in box.changed() if path.startswith("/app/")}
    files = {"kept/one", "kept/new", "replaced/three", "moved/five", "to_link"}
    folders = {"kept", "replaced", "moved"}
    assert {f"/app/{name}" for name in files} <= changed
    assert changed <= {f"/app/{name}" for name in files | folders}
    assert [path for path in box.deleted() if path.startswith("/app/")] == [
        f"/app/{name}" for name in ("gone", "renamed", "replaced/four", "seven")
    ]


def test_an_unchanged_workspace_has_no_changes(workspaces: Workspaces) -> None:
    box = workspaces.ended("cat kept/one")
    assert not [path for path in box.changed() if path.startswith("/app")]
    assert box.deleted() == ()


@pytest.mark.slow
def test_files_and_folders_are_copied_out_as_they_are(workspaces: Workspaces) -> None:
    box = workspaces.ended("echo text > kept/new; ln -s /etc/passwd kept/linked; mkfifo kept/pipe")
    copied = entries(box.copy_out("/app/kept", BYTES_MAX))
    # gVisor keeps pipes in its own memory.
    assert set(copied) - {"kept/pipe"} == {
        f"kept{name}" for name in ("", "/one", "/new", "/linked")
    }
    assert copied["kept/linked"].issym()
    assert "kept/pipe" not in copied or copied["kept/pipe"].isfifo()
    assert content(box.copy_out("/app/kept/new", BYTES_MAX)) == b"text\n"
    assert box.copy_out("/app/missing", BYTES_MAX) is None
    with suppress(InfraError):
        assert box.copy_out("/app/seven/below", BYTES_MAX) is None
    with pytest.raises(TooLarge):
        box.copy_out("/app/kept", 1024)


def test_links_of_a_workspace_lead_only_to_its_own_files(workspaces: Workspaces) -> None:
    box = workspaces.ended(
        "echo inside > /etc/passwd; ln -s /etc up; ln -s loop loop\n"
        "ln -s ../../../../../../../../../etc climbing; ln -s /proc/self/root/etc magic"
    )
    assert content(box.copy_out("/app/up/passwd", BYTES_MAX)) == b"inside\n"
    assert content(box.copy_out("/app/climbing/passwd", BYTES_MAX)) == b"inside\n"
    for path in ("/app/magic/passwd", "/app/loop/passwd"):
        with suppress(InfraError):
            assert box.copy_out(path, BYTES_MAX) is None
    # The last part of a path is not followed.
    (only,) = entries(box.copy_out("/app/up", BYTES_MAX)).values()
    assert only.issym()


def test_files_are_unpacked_before_the_start_and_links_of_the_image_stay_inside(
    workspaces: Workspaces,
) -> None:
    archive = packed(app__link__below="linked", new__folder__file="made", app__gone="replaced")
    said = workspaces.says("cat kept/below /new/folder/file gone", archive=archive)
    assert said == "linkedmadereplaced"


@pytest.mark.slow
def test_a_deep_folder_is_replaced_by_a_file_and_can_be_listed(workspaces: Workspaces) -> None:
    box = workspaces.live(
        "mkdir deep; cd deep; i=0; while [ $i -lt 1500 ]; do mkdir d; cd d; i=$((i+1)); done; "
        "echo ready > /app/ready; exec sleep 600"
    )
    eventually(lambda: box.written_bytes() > 1500 << 10)
    box.pause()
    assert "/app/deep" in box.changed()
    box.unpack(packed(app__deep="new"))
    assert content(box.copy_out("/app/deep", BYTES_MAX)) == b"new"


@pytest.mark.slow
def test_written_bytes_count_files_also_deleted_ones_that_are_open(workspaces: Workspaces) -> None:
    size = 8 << 20
    box = workspaces.start(f"head -c {size} /dev/zero > kept/big; sync kept/big; exec sleep 600")
    eventually(lambda: box.written_bytes() >= size)
    box.kill()
    if os.geteuid() == 0 and workspaces.isolation is not Isolation.SANDBOXED_KERNEL:
        deleting = f"exec 3> kept/x; rm kept/x; head -c {size} /dev/zero >&3; exec sleep 600"
        # The engine oci has a file there.
        other = workspaces.start(f"rm -f /.[0-9a-f]*; {deleting}")
        eventually(lambda: other.written_bytes() >= size)


@pytest.mark.slow
def test_the_limits_of_memory_and_processes_hold(workspaces: Workspaces) -> None:
    box = workspaces.start("exec tail /dev/zero", limits=replace(LIMITS, memory_bytes=64 << 20))
    ended = box.wait(PATIENCE_MS)
    assert ended is not None
    assert ended.code != 0
    many = workspaces.ended("for i in $(seq 200); do sleep 60 & done; echo all")
    assert b"all" not in many.close().stdout


@pytest.mark.slow
def test_nothing_runs_in_a_killed_workspace_while_it_is_read(workspaces: Workspaces) -> None:
    writing = "(while :; do echo x >> kept/grows; done) & (while :; do echo y >> kept/grows; done)"
    box = workspaces.start(writing)
    eventually(lambda: box.written_bytes() > 64 << 10)
    box.kill()
    first = box.copy_out("/app/kept/grows", 1 << 30)
    assert first is not None
    assert box.copy_out("/app/kept/grows", 1 << 30) == first


def test_a_killed_workspace_has_been_killed(workspaces: Workspaces) -> None:
    box = workspaces.start("exec sleep 600")
    box.kill()
    ended = box.wait(PATIENCE_MS)
    assert ended is not None
    assert ended.reason is ExitReason.KILLED


@pytest.mark.slow
def test_a_paused_workspace_is_read_and_continues(workspaces: Workspaces) -> None:
    box = workspaces.live("i=0; while :; do i=$((i+1)); echo $i > kept/grows; done")

    def paused() -> tuple[bool, bytes | None]:
        box.pause()
        seen = "/app/kept/grows" in box.changed(), box.copy_out("/app/kept", BYTES_MAX)
        assert box.copy_out("/app/kept", BYTES_MAX) == seen[1]
        box.resume()
        return seen

    eventually(lambda: paused()[0])
    first = paused()
    eventually(lambda: paused() != first)
    box.resume()
    box.pause()
    box.pause()
    box.kill()
    ended = box.wait(PATIENCE_MS)
    assert ended is not None
    assert ended.reason is ExitReason.KILLED


@pytest.mark.slow
def test_a_paused_workspace_can_be_closed(workspaces: Workspaces) -> None:
    box = workspaces.live("exec sleep 600")
    box.pause()
    box.close()


@pytest.mark.slow
def test_commands_run_in_a_workspace_with_its_rights(workspaces: Workspaces) -> None:
    box = workspaces.live("exec sleep 600")
    box.unpack(packed(tests__run="cat /proc/self/status > /app/status; pwd > /app/pwd; exit $1"))
    script = "echo $ADDED $GREETING > /app/env; exec sh /tests/run 7"
    status = box.execute(("sh", "-c", script), {"ADDED": "yes"})
    eventually(lambda: status() is not None)
    assert status() == 7
    box.kill()
    assert content(box.copy_out("/app/env", BYTES_MAX)) == b"yes hello\n"
    assert content(box.copy_out("/app/pwd", BYTES_MAX)) == b"/app\n"
    lines = content(box.copy_out("/app/status", BYTES_MAX)).decode().splitlines()
    values = dict(line.split(":\t", 1) for line in lines)
    assert {int(values[f"Cap{kind}"], 16) for kind in ("Eff", "Prm", "Bnd")} == {0xFB}
    if "NoNewPrivs" in values:  # Not in gVisor.
        assert (values["NoNewPrivs"], values["Seccomp"]) == ("1", "2")


@pytest.mark.slow
def test_files_that_other_programs_of_the_host_hold_do_not_count(
    workspaces: Workspaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = workspaces.live("exec sleep 600")
    monkeypatch.setattr(written, "HELD_MAX", 5000)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    with ExitStack() as opened:
        opened.callback(resource.setrlimit, resource.RLIMIT_NOFILE, before)
        first = opened.enter_context(open(os.devnull, "rb"))
        for _ in range(6000):
            opened.callback(os.close, os.dup(first.fileno()))
        assert box.written_bytes() < BYTES_MAX


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can see the disk of a daemon")
def test_a_workspace_that_makes_many_files_is_measured_at_once(
    workspaces: Workspaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_watch, "MEASURE_MS", 3_600_000)
    box = workspaces.start("for i in $(seq 6000); do : > /app/$i; done; exec sleep 600")
    limit_bytes = 3000 * INODE_BYTES
    ended, excess = disk_watch.wait_within_limit(box, "it", limit_bytes, PATIENCE_MS / 1000)
    assert ended is None
    assert excess.startswith("it wrote")


@pytest.mark.slow
def test_commands_start_while_the_size_of_a_workspace_is_measured(workspaces: Workspaces) -> None:
    box = workspaces.live("exec sleep 600")
    has_ended = Event()

    def measure() -> None:
        # A box is paused while its files are counted.
        while not has_ended.is_set():
            box.written_bytes()

    def status_of(number: int) -> int | None:
        status = box.execute(("sh", "-c", f"exit {number}"), {})
        eventually(lambda: status() is not None)
        return status()

    with ThreadPoolExecutor(1) as thread:
        measuring = thread.submit(measure)
        try:
            assert [status_of(number) for number in range(10)] == list(range(10))
        finally:
            has_ended.set()
        measuring.result()


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may signal processes of a workspace")
def test_a_workspace_that_stops_a_new_program_before_it_begins_is_killed(
    workspaces: Workspaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = stopping_next(workspaces, monkeypatch)
    with ThreadPoolExecutor(1) as thread:
        starting = thread.submit(box.execute, ("true",), {})
        with pytest.raises(NotBegun):
            starting.result(PATIENCE_MS / 1000)
    # Without a further kill.
    ended = box.wait(PATIENCE_MS)
    assert ended is not None
    assert ended.reason is ExitReason.KILLED
    box.kill()
    assert box.copy_out("/app/ready", BYTES_MAX) is not None


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="the test kills a process of the workspace")
@pytest.mark.parametrize("engine", OF_DAEMON, indirect=True)
def test_a_workspace_that_cannot_be_killed_counts_as_killed(
    workspaces: Workspaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = workspaces.engine
    assert isinstance(engine, DockerEngine)
    box = stopping_next(workspaces, monkeypatch)
    first = box.host_pid()
    assert first is not None

    def refuse(pid: int) -> int:
        raise PermissionError(pid)

    # As if an ordinary user started Fumehood.
    monkeypatch.setattr(os, "pidfd_open", refuse)
    with closing(Daemon()) as daemon:
        try:
            with pytest.raises(NotBegun):
                box.execute(("true",), {})
            assert box.wait(0) == Exit(137, ExitReason.KILLED)
            box.kill()
            for read in (box.written_bytes, box.changed, box.pause, box.resume, box.host_pid):
                with pytest.raises(NotBegun):
                    read()
            # A request to inspect the container holds its lock, so dockerd answers no other one.
            monkeypatch.setattr(engine._daemon.client, "timeout", 1)
            with pytest.raises(InfraError, match="in time"):
                engine._daemon.first_process(box.name)
            assert box.close().stdout == b""
            orphan = Orphan(OrphanKind.CONTAINER, box.name, "")
            assert not engine.remove(orphan), "the control"
        finally:
            os.kill(first, signal.SIGKILL)
            daemon.remove(box.name)


def stopping_next(workspaces: Workspaces, monkeypatch: pytest.MonkeyPatch) -> LiveWorkspaceBox:
    """Start a workspace that stops the next program before it begins."""
    if workspaces.isolation is Isolation.SANDBOXED_KERNEL:
        pytest.skip("gVisor starts programs itself, and none can be stopped before it begins")
    for module in (docker_daemon, containers):
        monkeypatch.setattr(module, "BEGIN_TIMEOUT_S", 5.0)
    stop_next = "until kill -STOP $(($$ + 1)) 2>/dev/null; do :; done; exec sleep 600"
    box = workspaces.live(f": > /app/ready; {stop_next}")
    eventually(lambda: box.written_bytes() > 0)
    return box


def test_a_command_that_still_runs_ends_with_its_workspace(workspaces: Workspaces) -> None:
    box = workspaces.live("exec sleep 600")
    status = box.execute(("sleep", "600"), {})
    assert status() is None
    box.kill()
    box.close()


@pytest.mark.slow
def test_nothing_of_a_closed_workspace_is_left(workspaces: Workspaces) -> None:
    deep = "i=0; while [ $i -lt 40 ]; do mkdir d && cd d; i=$((i+1)); done; echo > file"
    box = workspaces.ended(deep)
    assert box.changed()
    box.close()
    run = workspaces.labels[RUN]
    assert not FolderRecords().lost(lambda labels: labels.get(RUN) != run)

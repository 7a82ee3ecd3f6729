"""Boxes of the docker engine."""

from __future__ import annotations

import os
import secrets
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from docker import APIClient

from fumehood.core.errors import InputError
from fumehood.core.user_ids import BOX_UIDS
from fumehood.engines.docker.container import group_parent
from fumehood.engines.docker.daemon import Daemon
from fumehood.engines.docker.engine import DockerEngine
from fumehood.engines.engine import (
    CPU_SHARES,
    TIMERS_MAX,
    AgentKind,
    AgentSource,
    Box,
    BoxSpec,
    Image,
    Limits,
)
from fumehood.engines.host_names import MASKED
from fumehood.engines.images.agent_python import NAME as AGENT_PYTHON
from fumehood.engines.ownership import RUN
from fumehood.engines.seccomp import docker_profile

pytestmark = [pytest.mark.docker, pytest.mark.image]

FREEZER = Path("/sys/fs/cgroup/freezer")
PATIENCE_MS = 60_000
SLEEP = "import time; time.sleep(600)"


@pytest.fixture
def python(docker_engine: DockerEngine) -> Image:
    return docker_engine.prepare(AgentSource(AgentKind.BUILTIN, "noop"))


@pytest.fixture
def remove_images(daemon: APIClient) -> Iterator[list[str]]:
    references: list[str] = []
    yield references
    for reference in references:
        daemon.remove_image(reference, force=True)


def containers_of(daemon: APIClient, labels: dict[str, str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = daemon.containers(
        all=True, filters={"label": f"{RUN}={labels[RUN]}"}
    )
    return found


def run(engine: DockerEngine, image: Image, socket_dir: Path, *command: str) -> tuple[int, bytes]:
    box = engine.start(
        BoxSpec(image=replace(image, command=command or image.command), socket_dir=socket_dir)
    )
    ended = box.wait(PATIENCE_MS)
    output = box.close()
    assert ended is not None
    return ended.code, output.stdout + output.stderr


def write_agent(folder: Path, *lines: str) -> AgentSource:
    folder.mkdir(exist_ok=True)
    (folder / "Dockerfile").write_text("\n".join((f"FROM {AGENT_PYTHON}", *lines, "")))
    return AgentSource(AgentKind.FOLDER, str(folder))


@pytest.mark.slow
def test_a_box_is_hardened_in_every_setting(
    docker_engine: DockerEngine,
    daemon: APIClient,
    python: Image,
    socket_dir: Path,
    labels: dict[str, str],
) -> None:
    image = replace(python, command=("python3", "-c", SLEEP))
    limits = Limits(
        memory_bytes=64 << 20, cpus=0.5, processes=20, file_bytes=1 << 20, open_files=50
    )
    box = docker_engine.start(
        BoxSpec(image=image, socket_dir=socket_dir, limits=limits, labels=labels)
    )
    try:
        [container] = containers_of(daemon, labels)
        seen = daemon.inspect_container(container["Id"])
    finally:
        box.close()
    host, config = seen["HostConfig"], seen["Config"]
    assert host["NetworkMode"] == "none"
    assert host["ReadonlyRootfs"] is True
    assert host["CapDrop"] == ["ALL"]
    assert not host["CapAdd"]
    assert host["SecurityOpt"] == ["no-new-privileges", f"seccomp={docker_profile()}"]
    assert host["Privileged"] is False
    assert host["Init"] is True
    assert (host["IpcMode"], host["CgroupnsMode"], host["PidMode"]) == ("none", "private", "")
    assert (host["Memory"], host["MemorySwap"]) == (64 << 20, 64 << 20)
    assert (host["CpuQuota"], host["CpuPeriod"], host["PidsLimit"]) == (50_000, 100_000, 20)
    assert host["CpuShares"] == CPU_SHARES
    assert host["CgroupParent"] == (group_parent(daemon.info()) or "")
    assert {(one["Name"], one["Hard"]) for one in host["Ulimits"]} == {
        ("nofile", 50),
        ("fsize", 1 << 20),
        ("core", 0),
        ("msgqueue", 0),
        ("sigpending", TIMERS_MAX),
    }
    mounts = {(one["Destination"], one["RW"]) for one in seen["Mounts"]}
    private = {("/sbin/docker-init", False), ("/etc/passwd", False)}
    assert mounts - private == {("/fumehood", False)}
    assert host["Dns"] == ["127.0.0.1"]
    assert set(MASKED) < set(host["MaskedPaths"])
    assert host["Tmpfs"] == {
        "/tmp": "rw,noexec,nosuid,nodev,mode=1777,size=67108864,nr_inodes=16384",
        "/dev/pts": "ro,noexec,nosuid,nodev,size=4k",
    }
    assert host["LogConfig"]["Type"] == "none"
    user, _, group = config["User"].partition(":")
    assert user == group
    assert int(user) in BOX_UIDS
    assert config["Hostname"] == "localhost"


def test_an_image_without_cmd_and_entrypoint_is_rejected(
    docker_engine: DockerEngine, tmp_path: Path
) -> None:
    (tmp_path / "Dockerfile").write_text("FROM scratch\nCOPY Dockerfile /\n")
    with pytest.raises(InputError, match="has no command; give it a CMD or an ENTRYPOINT"):
        docker_engine.prepare(AgentSource(AgentKind.FOLDER, str(tmp_path)))


@pytest.mark.slow
def test_closing_leaves_no_container(
    docker_engine: DockerEngine,
    daemon: APIClient,
    python: Image,
    socket_dir: Path,
    labels: dict[str, str],
) -> None:
    def start() -> Box:
        image = replace(python, command=("python3", "-c", SLEEP))
        return docker_engine.start(BoxSpec(image=image, socket_dir=socket_dir, labels=labels))

    boxes = [start(), start()]
    assert len(containers_of(daemon, labels)) == 2
    for box in boxes:
        box.close()
    assert containers_of(daemon, labels) == []


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0 or not FREEZER.is_dir(), reason="needs control groups v1")
def test_a_container_that_does_not_end_fails_no_attempt(
    docker_engine: DockerEngine, daemon: APIClient, python: Image, socket_dir: Path
) -> None:
    """An agent can hold what the kernel needs minutes to free; a frozen process ends as late."""
    image = replace(python, command=("python3", "-c", SLEEP))
    box = docker_engine.start(BoxSpec(image=image, socket_dir=socket_dir))
    lines = Path(f"/proc/{box.host_pid()}/cgroup").read_text("ascii").splitlines()
    (group,) = (line.rpartition(":")[2] for line in lines if ":freezer:" in line)
    frozen = FREEZER / group.lstrip("/") / "frozen"
    frozen.mkdir()
    try:
        for process in (frozen.parent / "cgroup.procs").read_text("ascii").split():
            (frozen / "cgroup.procs").write_text(process)
        (frozen / "freezer.state").write_text("FROZEN")
        assert box.close().stdout == b""
        assert daemon.inspect_container(box.name), "the control"
    finally:
        (frozen / "freezer.state").write_text("THAWED")
        daemon.remove_container(box.name, force=True)
        for folder in (frozen, frozen.parent):
            with suppress(FileNotFoundError):
                folder.rmdir()


def test_a_box_that_cannot_start_leaves_no_container(
    docker_engine: DockerEngine,
    daemon: APIClient,
    python: Image,
    socket_dir: Path,
    labels: dict[str, str],
) -> None:
    with pytest.raises(InputError, match="nowhere"):
        docker_engine.start(
            BoxSpec(
                image=replace(python, command=("nowhere",)), socket_dir=socket_dir, labels=labels
            )
        )
    assert containers_of(daemon, labels) == []


def test_a_missing_image_is_an_input_error(docker_engine: DockerEngine) -> None:
    with pytest.raises(InputError, match="no-such-image"):
        docker_engine.prepare(AgentSource(AgentKind.IMAGE, "no-such-image:at-all"))


@pytest.mark.slow
def test_a_folder_becomes_an_image_that_runs_the_command_of_its_dockerfile(
    docker_engine: DockerEngine, socket_dir: Path, tmp_path: Path, remove_images: list[str]
) -> None:
    source = write_agent(tmp_path, 'ENTRYPOINT ["python3", "-c"]', "CMD [\"print('its own')\"]")
    image = docker_engine.prepare(source)
    remove_images.append(image.reference)
    assert run(docker_engine, image, socket_dir) == (0, b"its own\n")


@pytest.mark.slow
def test_a_folder_is_built_again_only_when_it_changed(
    docker_engine: DockerEngine, tmp_path: Path, remove_images: list[str]
) -> None:
    mark = secrets.token_hex(4)
    source = write_agent(tmp_path, f"ENV MARK={mark}", "COPY data /data", 'CMD ["python3"]')
    (tmp_path / "data").write_text("one")
    (tmp_path / ".dockerignore").write_text("notes\n")
    first = docker_engine.prepare(source)
    (tmp_path / "notes").write_text("not part of it")
    again = docker_engine.prepare(source)
    (tmp_path / "data").write_text("two")
    changed = docker_engine.prepare(source)
    remove_images += [first.reference, changed.reference]
    assert again == first
    assert changed.reference != first.reference
    assert changed.digest != first.digest


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['RUN ["python3", "-c", "raise SystemExit(9)"]'], "returned a non-zero code: 9"),
        (["NONSENSE"], "(?i)unknown instruction"),
        (["COPY missing /there"], "missing"),
    ],
)
def test_a_failed_build_is_an_input_error(
    docker_engine: DockerEngine, tmp_path: Path, lines: list[str], message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        docker_engine.prepare(write_agent(tmp_path, *lines))
    assert "\n" not in str(caught.value)


def test_a_folder_without_a_dockerfile_is_an_input_error(
    docker_engine: DockerEngine, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="no Dockerfile"):
        docker_engine.prepare(AgentSource(AgentKind.FOLDER, str(tmp_path)))


@pytest.mark.slow
def test_an_image_without_a_command_is_an_input_error(
    docker_engine: DockerEngine, tmp_path: Path, remove_images: list[str]
) -> None:
    with pytest.raises(
        InputError, match="has no command; give it a CMD or an ENTRYPOINT"
    ) as raised:
        docker_engine.prepare(write_agent(tmp_path, "ENTRYPOINT []", "CMD []"))
    remove_images.append(str(raised.value).split("'")[1])


@pytest.mark.slow
def test_settings_of_an_image_are_overridden(
    docker_engine: DockerEngine,
    daemon: APIClient,
    socket_dir: Path,
    tmp_path: Path,
    remove_images: list[str],
) -> None:
    """A volume could fill the disk, a health check adds a process, a user could be root."""
    look = (
        "import os; open('/data/x', 'w').write('kept in memory'); print(os.getuid() > 0)\\n"
        "try: open('/data/y', 'wb').write(bytes(3 << 20))\\nexcept OSError as e: print(e.strerror)"
    )
    image = docker_engine.prepare(
        write_agent(
            tmp_path,
            "VOLUME /data",
            "HEALTHCHECK --interval=1s CMD echo",
            "USER root",
            f'CMD ["python3", "-c", "{look}"]',
        )
    )
    remove_images.append(image.reference)
    before = {one["Name"] for one in daemon.volumes()["Volumes"] or ()}
    box = docker_engine.start(
        BoxSpec(image=image, socket_dir=socket_dir, limits=Limits(tmp_bytes=2 << 20))
    )
    during = {one["Name"] for one in daemon.volumes()["Volumes"] or ()}
    assert box.wait(PATIENCE_MS) is not None
    output = box.close()
    assert output.stdout == b"True\nNo space left on device\n", output.stderr
    assert during <= before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "name"),
    [
        ("WORKDIR /proc/self/fd/7", "WORKDIR '/proc/self/fd/7'"),
        ("WORKDIR /link", "WORKDIR '/link' leads to /proc/self/fd/8"),
        ("WORKDIR /parent/8", "WORKDIR '/parent/8' leads to /proc/self/fd"),
        ("VOLUME /proc", "VOLUME '/proc'"),
        ("VOLUME /dev", "VOLUME '/dev'"),
        ("VOLUME tmp/../fumehood/bin", "VOLUME 'tmp/../fumehood/bin' hides /fumehood/bin"),
    ],
)
def test_an_image_that_cannot_start_is_an_input_error_that_names_the_setting(
    setting: str,
    name: str,
    docker_engine: DockerEngine,
    tmp_path: Path,
    remove_images: list[str],
) -> None:
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "link").symlink_to("/proc/self/fd/8")
    (tmp_path / "links" / "parent").symlink_to("/proc/self/fd")
    with pytest.raises(InputError) as raised:
        docker_engine.prepare(write_agent(tmp_path, "COPY links /", setting))
    remove_images.append(str(raised.value).split("'")[1])
    assert name in str(raised.value)
    assert "Dockerfile" in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.slow
def test_an_image_with_a_usual_working_folder_starts_in_it(
    docker_engine: DockerEngine, socket_dir: Path, tmp_path: Path, remove_images: list[str]
) -> None:
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "link").symlink_to("/srv/app")
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "agent.py").write_text("import os; print(os.getcwd())")
    image = docker_engine.prepare(
        write_agent(
            tmp_path,
            "COPY app /srv/app",
            "COPY links /",
            "WORKDIR /link",
            'CMD ["python3", "agent.py"]',
        )
    )
    remove_images.append(image.reference)
    box = docker_engine.start(BoxSpec(image=image, socket_dir=socket_dir))
    assert box.wait(PATIENCE_MS) is not None
    assert box.close().stdout == b"/srv/app\n"


@pytest.mark.slow
def test_a_folder_in_place_of_the_list_of_users_is_not_read_into_memory(
    docker_engine: DockerEngine, daemon: APIClient, tmp_path: Path, remove_images: list[str]
) -> None:
    """The size of a folder does not count its files."""
    replace_users = (
        "import os; os.remove('/etc/passwd'); os.mkdir('/etc/passwd');"
        " open('/etc/passwd/large', 'wb').truncate(1 << 20)"
    )
    with pytest.raises(InputError) as raised:
        docker_engine.prepare(
            write_agent(
                tmp_path, f'RUN ["python3", "-c", "{replace_users}"]', 'CMD ["python3", "-V"]'
            )
        )
    reference = str(raised.value).split("'")[1]
    remove_images.append(reference)
    container = daemon.create_container(reference, ["true"])["Id"]
    client = Daemon()
    try:
        assert client.small_file(container, "/etc/passwd/large") == b""
        tracemalloc.start()
        assert client.small_file(container, "/etc/passwd") == b""
        assert tracemalloc.get_traced_memory()[1] < 1 << 19
        assert client.small_file(container, "/etc/group").startswith(b"nogroup")
    finally:
        tracemalloc.stop()
        client.close()
        daemon.remove_container(container)

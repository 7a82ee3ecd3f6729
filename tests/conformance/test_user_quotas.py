"""A workspace reaches its limit of memory before a limit that the kernel counts per user."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from fumehood.engines.engine import (
    AgentKind,
    AgentSource,
    BoxSpec,
    Engine,
    Limits,
    Workspace,
)
from fumehood.engines.ownership import owner_labels
from fumehood.engines.registry import choose_engine
from fumehood.engines.user_quotas import QUOTAS, Quota
from tests.conformance.boxes import PATIENCE_MS

ENGINES = [
    pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.xdist_group("docker")]),
    pytest.param("oci", marks=[pytest.mark.oci, pytest.mark.xdist_group("oci")]),
]
MEMORY_BYTES = 32 << 20
EPOLL, PIPES = QUOTAS
FILL = """
import fcntl, os, resource, select, signal
def epoll():
    event = os.eventfd(0)
    targets = [os.dup(event) for _ in range(400)]
    for _ in range(50):
        instances.append(select.epoll())
        for target in targets:
            instances[-1].register(target, 0)
    return len(instances) * len(targets)
def pipes():
    sizes = [fcntl.fcntl(os.pipe()[0], fcntl.F_SETPIPE_SZ, 1 << 20) for _ in range(50)]
    return sum(sizes) // resource.getpagesize()
"""
RUN = """
total, instances, full = 0, [], True
while full:
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.write(writer, f"{{{fill}():20}}".encode())
        signal.pause()
    os.close(writer)
    # The kernel ends the process if the memory is used up.
    if full := os.read(reader, 20):
        total += int(full)
        os.write(1, f"{{total}}\\n".encode())
"""


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    if os.geteuid() != 0:
        pytest.skip("only root can raise the limits")
    with closing(choose_engine(request.param).engine) as chosen:
        yield chosen


@pytest.mark.slow
@pytest.mark.image
@pytest.mark.parametrize(("fill", "quota"), [("epoll", EPOLL), ("pipes", PIPES)])
def test_a_workspace_runs_out_of_memory_before_a_quota(
    engine: Engine, fill: str, quota: Quota, socket_dir: Path
) -> None:
    image = engine.prepare(AgentSource(AgentKind.BUILTIN, "noop"))
    command = (image.command[0], "-c", FILL + RUN.format(fill=fill))
    box = engine.start(
        BoxSpec(
            image=replace(image, command=command),
            socket_dir=socket_dir,
            limits=Limits(memory_bytes=MEMORY_BYTES, processes=512),
            labels=owner_labels("quotas"),
            workspace=Workspace(),
        )
    )
    with closing(box):
        # Also the counts of a slow box, which is killed here, must be below the limit.
        box.wait(PATIENCE_MS)
        output = box.close()
    counts = [int(line) for line in output.stdout.split()]
    assert os.strerror(errno.ENOSPC).encode() not in output.stderr
    assert os.strerror(errno.EPERM).encode() not in output.stderr
    assert counts
    assert counts[-1] < MEMORY_BYTES // quota.bytes_each

"""Runtimes in the answer of a Docker daemon."""

from __future__ import annotations

import pytest

from fumehood.engines.docker.container import group_parent, sandboxed_runtimes

INFO = {
    "DefaultRuntime": "runc",
    "Runtimes": {
        "runc": {"path": "runc"},
        "io.containerd.runc.v2": {"path": "runc"},
        "gvisor": {"path": "/usr/local/bin/runsc"},
        "boxes": {"runtimeType": "io.containerd.kata.v2"},
    },
}


def test_runtimes_with_their_own_kernel_are_listed() -> None:
    assert sandboxed_runtimes(INFO) == ("boxes", "gvisor")


@pytest.mark.parametrize(
    ("driver", "options", "parent"),
    [
        ("cgroupfs", ["name=seccomp,profile=builtin"], "/"),
        ("cgroupfs", ["name=rootless"], None),
        ("systemd", [], None),
        ("none", [], None),
    ],
)
def test_boxes_compete_with_single_processes_of_the_host_if_the_daemon_permits_it(
    driver: str, options: list[str], parent: str | None
) -> None:
    assert group_parent({"CgroupDriver": driver, "SecurityOptions": options}) == parent

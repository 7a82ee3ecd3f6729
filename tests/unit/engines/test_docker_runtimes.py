"""Runtimes in the answer of a Docker daemon."""

from __future__ import annotations

import pytest

from fumehood.engines.docker.container import group_parent, runtime_problem, sandboxed_runtimes

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


def test_a_podman_that_answers_at_the_socket_of_docker_is_refused_with_the_remedy() -> None:
    assert not runtime_problem(INFO, None)

    problem = runtime_problem(INFO | {"ServerVersion": "4.3.1", "BuildahVersion": "1.28.2"}, None)

    assert "Podman 4.3.1" in problem
    assert "DOCKER_HOST" in problem


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

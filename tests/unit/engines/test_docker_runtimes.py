"""What is read from a daemon's list of runtimes."""

from __future__ import annotations

from fumehood.engines.docker.container import own_kernels

INFO = {
    "DefaultRuntime": "runc",
    "Runtimes": {
        "runc": {"path": "runc"},
        "io.containerd.runc.v2": {"path": "runc"},
        "gvisor": {"path": "/usr/local/bin/runsc"},
        "boxes": {"runtimeType": "io.containerd.kata.v2"},
    },
}


def test_runtimes_that_bring_a_kernel_are_told_from_those_that_share_the_hosts() -> None:
    assert own_kernels(INFO) == ("boxes", "gvisor")

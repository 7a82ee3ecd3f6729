"""Runtimes in the answer of a Docker daemon."""

from __future__ import annotations

from fumehood.engines.docker.container import sandboxed_runtimes

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

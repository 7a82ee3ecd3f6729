"""What a Docker daemon's runtimes are worth, read from what the daemon says about itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from fumehood.engines.engine import Isolation

_OWN_KERNEL = ("runsc", "kata")
"""Beginnings of the names of runtimes that bring a kernel: gVisor, Kata Containers."""
_HOST_SOCKETS = "--host-uds="
"""gVisor's flag; without it a box cannot open a socket of the host. Source: runsc flags --help."""


def isolation_of(info: Mapping[str, Any], runtime: str | None) -> Isolation:
    """Return what a runtime gives.

    Args:
        info: as the daemon answers.
        runtime: its name; None for the daemon's default.
    """
    binary = _binary(info, runtime or info["DefaultRuntime"])
    return Isolation.SANDBOXED_KERNEL if binary.startswith(_OWN_KERNEL) else Isolation.CONTAINER


def runtime_trouble(info: Mapping[str, Any], runtime: str | None) -> str:
    """Return why boxes cannot be made with a runtime, and what to do; empty when they can."""
    name = runtime or info["DefaultRuntime"]
    known = info["Runtimes"]
    if name not in known:
        return (
            f"no runtime {name!r} is registered with Docker; there are: {', '.join(sorted(known))}"
        )
    arguments = known[name].get("runtimeArgs") or ()
    if _binary(info, name) == "runsc" and not any(
        one.startswith(_HOST_SOCKETS) for one in arguments
    ):
        return f"the runtime {name!r} keeps sockets out; add {_HOST_SOCKETS}open to its runtimeArgs"
    return ""


def own_kernels(info: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the registered runtimes that bring a kernel, in order."""
    return tuple(
        name
        for name in sorted(info["Runtimes"])
        if isolation_of(info, name) is Isolation.SANDBOXED_KERNEL
    )


def has_seccomp(info: Mapping[str, Any]) -> bool:
    """Tell whether the daemon filters system calls by default."""
    return any(option.startswith("name=seccomp") for option in info.get("SecurityOptions") or ())


def _binary(info: Mapping[str, Any], name: str) -> str:
    """Return the name of a runtime's program, such as ``runsc``.

    A runtime is registered with a path, or with a type such as ``io.containerd.runsc.v1``.
    """
    entry = info["Runtimes"].get(name, {})
    if entry.get("runtimeType"):
        return str(entry["runtimeType"]).removeprefix("io.containerd.")
    return PurePosixPath(entry.get("path") or name).name

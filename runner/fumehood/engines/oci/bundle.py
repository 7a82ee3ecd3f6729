"""The configuration of a box for an OCI runtime: the settings of a docker box, without a daemon.

Source: OCI runtime specification 1.0.2, config.md and config-linux.md.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from fumehood.engines.docker.container import OF_WORKSPACE, SHARED_MEMORY_BYTES
from fumehood.engines.engine import TIMERS_MAX, Limits, Mount
from fumehood.engines.host_names import MASKED, MASKED_FROM_ROOT
from fumehood.engines.oci.box_root import BoxRoot
from fumehood.engines.seccomp import docker_profile

_HOSTNAME = "localhost"
_TMP_BYTES_PER_FILE = 4096
"""Sets the number of inodes: empty files use kernel memory too."""
_TERMINALS_MAX = 64
"""Pseudo-terminals of a workspace that needs them (decision 78). All boxes of a machine together
have about 3,000. Source: pty(7)."""
_EMPTY = ("ro", "nosuid", "nodev", "noexec", "mode=555", "size=4k", "nr_inodes=1")
"""An empty folder. Runtimes that make /proc/sys read-only make mounts below it writable again, so
its only inode is that of the folder itself; with a size of 0, there would be no limit."""
_HELD = ("bounding", "effective", "permitted")
_PASSED_ON = ("inheritable", "ambient")
"""The sets of capabilities. Source: capabilities(7)."""
_NAMESPACES = ("cgroup", "ipc", "mount", "network", "pid", "uts")
_MASKED_BY_DOCKER = (
    *("/proc/asound", "/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats"),
    *("/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi"),
)
_READ_ONLY = ("/proc/bus", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
"""Docker's defaults. Source: moby, oci/defaults.go."""
ARCHITECTURES = {"x86_64": "SCMP_ARCH_X86_64", "aarch64": "SCMP_ARCH_AARCH64"}
"""Processors for which the list of system calls holds."""


def bundle_config(
    root: BoxRoot,
    command: Sequence[str],
    *,
    user: int,
    environment: Mapping[str, str],
    working_dir: str,
    mounts: Iterable[Mount],
    scratch: Iterable[str],
    limits: Limits,
    group: str,
    shares_null: bool,
    is_workspace: bool,
    has_terminals: bool,
    network: str = "",
) -> dict[str, Any]:
    """Return the content of a bundle's ``config.json``.

    Args:
        root: of the box.
        command: to run under the init program.
        user: user and group on the host and inside.
        environment: all variables of the command.
        working_dir: absolute path inside.
        mounts: shown read-only.
        scratch: folders that are small and writable, in addition to /tmp.
        limits: of the box; those of its control group are set elsewhere.
        group: path of the control group for a runtime that always joins one; empty for none.
        shares_null: whether the runtime would mask files with the null device of the host.
        is_workspace: whether programs are root and may write everywhere.
        has_terminals: whether programs can open pseudo-terminals.
        network: path of the network namespace; empty for a new one, without a network.
    """
    if is_workspace:
        user = 0
    capabilities = [f"CAP_{name}" for name in OF_WORKSPACE] if is_workspace else []
    return {
        "ociVersion": "1.0.2",
        "hostname": _HOSTNAME,
        "root": {"path": str(root.merged), "readonly": not is_workspace},
        "process": {
            "terminal": False,
            "user": {"uid": user, "gid": user, "additionalGids": []},
            # The init program dies with the runtime, whose death no signal of a box can cause.
            "args": [root.mark, "-p", "SIGKILL", "--", *command],
            "env": [f"{name}={value}" for name, value in environment.items()],
            "cwd": working_dir or "/",
            "capabilities": dict.fromkeys(_HELD, capabilities) | {kind: [] for kind in _PASSED_ON},
            "noNewPrivileges": True,
            "rlimits": _rlimits(limits),
        },
        "mounts": [
            *_system_mounts(),
            _terminals() if has_terminals else _mount("/dev/pts", "tmpfs", *_EMPTY),
            *(_masks(root, is_workspace) if shares_null else ()),
            # In a workspace, /tmp belongs to the file system that can be copied out.
            *(_shared_memory() if is_workspace else _tmpfs(scratch, limits)),
            *map(_bind, mounts),
        ],
        "linux": {
            "namespaces": [
                {"type": kind} | ({"path": network} if network and kind == "network" else {})
                for kind in _NAMESPACES
            ],
            "seccomp": _profile(of_root=is_workspace),
            "maskedPaths": [] if shares_null else list(_masked(is_workspace)),
            "readonlyPaths": list(_READ_ONLY),
            **({"cgroupsPath": group} if group else {}),
        },
    }


@cache
def _profile(*, of_root: bool) -> dict[str, Any]:
    """Return the list of system calls in the format of OCI, which differs from docker's here."""
    profile: dict[str, Any] = json.loads(docker_profile(of_root=of_root))
    del profile["archMap"]
    return profile | {"architectures": [ARCHITECTURES[platform.machine()]]}


def _rlimits(limits: Limits) -> list[dict[str, Any]]:
    values = {
        "NOFILE": limits.open_files,
        "FSIZE": limits.file_bytes,
        "CORE": 0,
        "SIGPENDING": TIMERS_MAX,
        "MSGQUEUE": 0,
    }
    return [{"type": f"RLIMIT_{name}", "soft": n, "hard": n} for name, n in values.items()]


def _system_mounts() -> Iterable[dict[str, Any]]:
    yield _mount("/proc", "proc", "nosuid", "noexec", "nodev")
    yield _mount("/dev", "tmpfs", "nosuid", "noexec", "mode=755", "size=64k")


def _terminals() -> dict[str, Any]:
    options = ("newinstance", "ptmxmode=0666", "mode=0620", f"max={_TERMINALS_MAX}")
    return _mount("/dev/pts", "devpts", "nosuid", "noexec", *options)


def _masked(is_workspace: bool) -> tuple[str, ...]:
    return (*_MASKED_BY_DOCKER, *MASKED, *(MASKED_FROM_ROOT if is_workspace else ()))


def _masks(root: BoxRoot, is_workspace: bool) -> Iterable[dict[str, Any]]:
    # A box has no /sys.
    shown = (path for path in _masked(is_workspace) if not path.startswith("/sys/"))
    for path in filter(os.path.exists, shown):
        if os.path.isdir(path):
            yield _mount(path, "tmpfs", *_EMPTY)
        else:
            yield _mount(path, "bind", "bind", "ro", "nosuid", "noexec", source=str(root.null))


def _tmpfs(scratch: Iterable[str], limits: Limits) -> Iterable[dict[str, Any]]:
    files = limits.tmp_bytes // _TMP_BYTES_PER_FILE
    size = (f"size={limits.tmp_bytes}", f"nr_inodes={files}")
    for path in ("/tmp", *scratch):
        yield _mount(path, "tmpfs", "nosuid", "nodev", "noexec", "mode=1777", *size)


def _shared_memory() -> Iterable[dict[str, Any]]:
    size = f"size={SHARED_MEMORY_BYTES}"
    yield _mount("/dev/shm", "tmpfs", "nosuid", "nodev", "noexec", "mode=1777", size)


def _bind(shown: Mount) -> dict[str, Any]:
    options = ("rbind", "rprivate", "ro", "nosuid", "nodev")
    return _mount(shown.target, "bind", *options, source=str(shown.source))


def _mount(target: str, kind: str, *options: str, source: str = "") -> dict[str, Any]:
    return {
        "destination": target,
        "type": kind,
        "source": source or kind,
        "options": list(options),
    }

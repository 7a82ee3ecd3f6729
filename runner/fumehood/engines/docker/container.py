"""The settings of a box's container, and the properties of OCI runtimes.

Every feature that a box does not need is off, regardless of the image: no network, no writable
folder except small tmpfs mounts, no capabilities, no privilege escalation, no system call outside
the list of ``seccomp.py``, no health check, no volume. All other settings keep Docker's defaults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from docker import APIClient
from docker.types import Healthcheck, HostConfig, LogConfig, Mount, Ulimit

from fumehood.core.user_ids import BOX_UIDS
from fumehood.engines.engine import CPU_SHARES, TIMERS_MAX, BoxSpec, Isolation, Limits
from fumehood.engines.engine import Mount as BoxMount
from fumehood.engines.host_names import MASKED, MASKED_FROM_ROOT, READ_ONLY_TO_ROOT
from fumehood.engines.seccomp import docker_profile

_HOSTNAME = "localhost"
_CPU_PERIOD_US = 100_000
_KERNEL_TASKS = 256
"""Threads of a busy gVisor sentry; with fewer it crashes, and the box with it."""
_TMP_BYTES_PER_FILE = 4096
"""Sets the number of inodes: empty files use kernel memory too."""
_RESOLVER = _LOOPBACK = "127.0.0.1"
_MASKED_BY_DOCKER = (
    *("/proc/asound", "/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats"),
    *("/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi"),
    "/sys/firmware",
)
"""Docker's default, which the request replaces. Source: moby, oci/defaults.go."""
_READ_ONLY_BY_DOCKER = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
"""Docker's default, which the request replaces. Source: moby, oci/defaults.go."""
_WRITABLE = "rw,noexec,nosuid,nodev,mode=1777"
OF_WORKSPACE = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID")
"""Capabilities with which root in a workspace installs files and changes to other users."""
SHARED_MEMORY_BYTES = 64 << 20
"""Size of /dev/shm in a workspace; Docker's default."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """The runtime of a container."""

    name: str | None
    """Registered with the daemon; None for its default."""
    own_kernel: bool
    """True if it brings a kernel: the threads of that kernel are tasks of the container, and it
    handles the system calls."""
    filters: bool
    """True if the daemon can filter system calls."""
    group_parent: str | None
    """Parent of the control groups; None for that of the daemon."""

    @property
    def installs_filter(self) -> bool:
        """Whether its containers get the project's system call filter."""
        return self.filters and not self.own_kernel


@dataclass(frozen=True, slots=True)
class Private:
    """The user and the mounts that belong to one box only."""

    user: int
    """User and group inside."""
    mounts: tuple[BoxMount, ...]
    """Private copies of files, and the folder with its sockets."""


def container_config(
    client: APIClient, spec: BoxSpec, command: Sequence[str], runtime: Runtime, private: Private
) -> dict[str, Any]:
    """Return the body of the request that creates a box.

    Args:
        client: formats the request for the daemon's API version; it sends nothing.
        spec: the box.
        command: to run, with its arguments; replaces that of the image.
        runtime: of the container.
        private: its user and its files; the mounts of ``spec`` are not used.
    """
    config: dict[str, Any] = client.create_container_config(
        spec.image.digest or spec.image.reference,
        list(command[1:]),
        entrypoint=list(command[:1]),
        # A shared network namespace has the host name of its first box.
        hostname=None if _shares_network(spec) else _HOSTNAME,
        user="0:0" if spec.workspace else f"{private.user}:{private.user}",
        working_dir=spec.image.working_dir or None,
        environment=spec.image.environment,
        labels=spec.labels,
        healthcheck=Healthcheck(test=["NONE"]),
        host_config=_host_config(client, spec, runtime, private.mounts),
    )
    return config


def _host_config(
    client: APIClient, spec: BoxSpec, runtime: Runtime, mounts: Sequence[BoxMount]
) -> HostConfig:
    config = client.create_host_config(
        network_mode=f"container:{spec.workspace.network_of}"
        if spec.workspace and spec.workspace.network_of
        else "none",
        extra_hosts=dict.fromkeys(spec.workspace.hosts, _LOOPBACK) if spec.workspace else None,
        read_only=spec.workspace is None,
        cap_drop=["ALL"],
        cap_add=list(OF_WORKSPACE) if spec.workspace else [],
        security_opt=_security(runtime, of_root=spec.workspace is not None),
        init=True,
        # A private namespace; that of an agent without /dev/shm, which would be writable.
        ipc_mode="private" if spec.workspace else "none",
        shm_size=SHARED_MEMORY_BYTES if spec.workspace else None,
        cgroupns="private",
        cgroup_parent=runtime.group_parent,
        tmpfs=_without_terminals(spec, runtime) | _tmpfs(spec),
        mounts=[
            Mount(mount.target, str(mount.source), type="bind", read_only=True) for mount in mounts
        ],
        # Otherwise the file names the servers and domains of the host.
        dns=None if _shares_network(spec) else [_RESOLVER],
        dns_search=None if _shares_network(spec) else ["."],
        # Output is read by attaching and must not fill the daemon's disk.
        log_config=LogConfig(type="none", config={}),
        runtime=runtime.name,
        **_resources(spec.limits, _KERNEL_TASKS if runtime.own_kernel else 0),
    )
    config["MaskedPaths"] = [*_MASKED_BY_DOCKER, *MASKED]
    if spec.workspace:
        config["MaskedPaths"] += MASKED_FROM_ROOT
        config["ReadonlyPaths"] = [*_READ_ONLY_BY_DOCKER, *READ_ONLY_TO_ROOT]
    return config


def _shares_network(spec: BoxSpec) -> bool:
    return spec.workspace is not None and bool(spec.workspace.network_of)


def _security(runtime: Runtime, *, of_root: bool) -> list[str]:
    profile = docker_profile(of_root=of_root)
    seccomp = [f"seccomp={profile}"] if runtime.installs_filter else []
    return ["no-new-privileges", *seccomp]


def _resources(limits: Limits, kernel_tasks: int) -> dict[str, Any]:
    return {
        "mem_limit": limits.memory_bytes,
        "memswap_limit": limits.memory_bytes,
        "cpu_period": _CPU_PERIOD_US,
        "cpu_quota": round(limits.cpus * _CPU_PERIOD_US),
        "cpu_shares": CPU_SHARES,
        "pids_limit": limits.processes + kernel_tasks,
        "ulimits": [
            _both("nofile", limits.open_files),
            _both("fsize", limits.file_bytes),
            _both("core", 0),
            _both("sigpending", TIMERS_MAX),
            # Docker always mounts /dev/mqueue, which is writable.
            _both("msgqueue", 0),
        ],
    }


def _both(name: str, value: int) -> Ulimit:
    return Ulimit(name=name, soft=value, hard=value)


def _without_terminals(spec: BoxSpec, runtime: Runtime) -> dict[str, str]:
    """Return the empty folder that hides pseudo-terminals of the host's kernel (decision 78)."""
    has_terminals = runtime.own_kernel or (spec.workspace is not None and spec.workspace.terminals)
    return {} if has_terminals else {"/dev/pts": "ro,noexec,nosuid,nodev,size=4k"}


def _tmpfs(spec: BoxSpec) -> dict[str, str]:
    if spec.workspace is not None:
        # There, /tmp belongs to the file system that can be copied out.
        return {}
    size_bytes = spec.limits.tmp_bytes
    options = f"{_WRITABLE},size={size_bytes},nr_inodes={size_bytes // _TMP_BYTES_PER_FILE}"
    return dict.fromkeys(("/tmp", *spec.image.scratch), options)


def container_user(info: Mapping[str, Any], user: int) -> int:
    """Return the user inside a container for a reserved one, given the answer to ``GET /info``.

    A daemon with a user namespace maps only small numbers, and the host sees others.
    """
    return user - BOX_UIDS.start if has_user_namespace(info) else user


def group_parent(info: Mapping[str, Any]) -> str | None:
    """Return the parent of the control groups of boxes, given the answer to ``GET /info``.

    In the daemon's parent group, all containers together would compete with one process of the
    host, and the weight of a box would count among containers only. Systemd permits slices only.
    """
    return "/" if info.get("CgroupDriver") == "cgroupfs" and not is_rootless(info) else None


def is_rootless(info: Mapping[str, Any]) -> bool:
    """Return whether an ordinary user runs the daemon."""
    return "name=rootless" in (info.get("SecurityOptions") or ())


def has_user_namespace(info: Mapping[str, Any]) -> bool:
    """Return whether the daemon runs its containers in a user namespace."""
    options = info.get("SecurityOptions") or ()
    return any(option.startswith(("name=userns", "name=rootless")) for option in options)


_OWN_KERNEL = ("runsc", "kata")
"""Prefixes of the binaries of runtimes that bring a kernel: gVisor, Kata Containers."""
_IS_PODMAN = "BuildahVersion"
"""Field that only Podman adds to the answer to ``GET /info``, with and without root."""
_HOST_SOCKETS = "--host-uds="
"""Flag of gVisor; without it a box cannot open a socket of the host. Source: runsc flags --help."""


def isolation_of(info: Mapping[str, Any], runtime: str | None) -> Isolation:
    """Return the isolation of a runtime; None is the default of the daemon that sent ``info``."""
    binary = _binary(info, runtime or info["DefaultRuntime"])
    return Isolation.SANDBOXED_KERNEL if binary.startswith(_OWN_KERNEL) else Isolation.CONTAINER


def runtime_problem(info: Mapping[str, Any], runtime: str | None) -> str:
    """Return why a runtime cannot start boxes, with the remedy; empty if it can."""
    if _IS_PODMAN in info:
        return (
            f"Podman {info['ServerVersion']} answers instead of Docker, and its boxes are not "
            "tested; set DOCKER_HOST to the socket of a Docker daemon, or use --engine bubblewrap"
        )
    name = runtime or info["DefaultRuntime"]
    known = info["Runtimes"]
    if name not in known:
        return f"no runtime {name!r} is registered with Docker; known: {', '.join(sorted(known))}"
    arguments = known[name].get("runtimeArgs") or ()
    if _binary(info, name) == "runsc" and not any(
        argument.startswith(_HOST_SOCKETS) for argument in arguments
    ):
        return (
            f"the runtime {name!r} blocks host sockets; add {_HOST_SOCKETS}open to its runtimeArgs"
        )
    return ""


def sandboxed_runtimes(info: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the sorted names of the registered runtimes that bring a kernel."""
    return tuple(
        name
        for name in sorted(info["Runtimes"])
        if isolation_of(info, name) is Isolation.SANDBOXED_KERNEL
    )


def has_seccomp(info: Mapping[str, Any]) -> bool:
    """Return whether the daemon supports seccomp filters."""
    return any(option.startswith("name=seccomp") for option in info.get("SecurityOptions") or ())


def _binary(info: Mapping[str, Any], name: str) -> str:
    """Return the name of a runtime's binary, such as ``runsc``.

    A runtime is registered with a path, or with a type such as ``io.containerd.runsc.v1``.
    """
    entry = info["Runtimes"].get(name, {})
    if entry.get("runtimeType"):
        return str(entry["runtimeType"]).removeprefix("io.containerd.")
    return PurePosixPath(entry.get("path") or name).name

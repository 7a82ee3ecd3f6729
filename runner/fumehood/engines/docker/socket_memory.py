"""Limits the memory of a container's sockets where control groups have version 1.

There, it does not count as memory of the group, and runc ignores Docker's limit. Without a limit
one container can use all memory that the kernel allows for TCP, so that connections of the host
stall. The limit must exist before the first socket, so the group is made before the container
starts; runc uses a group that exists and is empty.

Source: Linux, admin-guide/cgroup-v1/memory, section 2.7; runc, release notes of 1.0.0-rc94.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from fumehood.engines.bubblewrap.cgroups import SOCKET_MEMORY, hierarchies, socket_bytes
from fumehood.engines.engine import Limits


def limit_socket_memory(container: str, limits: Limits) -> None:
    """Make the memory group of a container that has not been started.

    The group of the container must have no parent. Has no effect with version 2, which counts this
    memory, and for an ordinary user.
    """
    group = _group(container)
    if group is not None:
        # The daemon can have other groups; then the container starts without this limit.
        with suppress(OSError):
            group.mkdir(exist_ok=True)
            (group / SOCKET_MEMORY).write_text(str(socket_bytes(limits)), "ascii")


def drop_group(container: str) -> None:
    """Remove the group of a container that has not been started; runc removes it otherwise."""
    group = _group(container)
    if group is not None:
        with suppress(OSError):
            group.rmdir()


def _group(container: str) -> Path | None:
    found = hierarchies()
    if found is None or found.is_unified:
        return None
    return found.tops["memory"] / container
